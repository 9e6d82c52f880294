"""What a running action keeps in its row between passes."""

from __future__ import annotations

import json

from fleet.actions.domain.progress import BlockedPod, Progress


def test_it_is_read_back_as_it_was_written() -> None:
    progress = Progress(
        was_schedulable=False,
        pods=5,
        remaining=2,
        evicted=3,
        first=1,
        blocked=(BlockedPod("vision/a", "a budget"), BlockedPod("nlp/b", "no answer")),
        is_labeled=True,
        judged="The node offers 7 slices.",
    )

    stored = json.loads(json.dumps(progress.to_json()))

    assert Progress.from_json(stored) == progress
    assert (progress.left, [pod.namespace for pod in progress.blocked]) == (3, ["vision", "nlp"])


def test_before_the_first_pass_nothing_is_known() -> None:
    assert Progress.from_json({}) == Progress()
    assert Progress().was_schedulable is None
