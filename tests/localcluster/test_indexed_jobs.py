"""Indexed Jobs of the embedded cluster: which pods are made, what counts as a failure, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from slipway_localcluster.controllers import indexed_jobs

RULES = [
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [75]}},
    {
        "action": "FailJob",
        "onExitCodes": {"containerName": "worker", "operator": "In", "values": [78]},
    },
]


def job(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 2,
            "backoffLimitPerIndex": 1,
            "podFailurePolicy": {"rules": RULES},
            "template": {"spec": {"containers": [{"name": "worker"}]}},
            **spec,
        },
    }


def pod(index: int, phase: str, code: int = 0, *conditions: str) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code}}
    return {
        "metadata": {
            "name": f"j-{index}",
            "namespace": "n",
            "annotations": {indexed_jobs.INDEX: str(index)},
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": kind, "status": "True"} for kind in conditions],
            "containerStatuses": [{"name": "worker", "state": state}],
        },
    }


@pytest.mark.parametrize(
    ("pods", "missing"),
    [
        ([], (0, 1)),
        ([pod(0, "Running")], (1,)),
        ([pod(0, "Running"), pod(1, "Pending")], ()),
        ([pod(0, "Succeeded"), pod(1, "Running")], (2,)),
        ([pod(0, "Failed", 1), pod(1, "Running")], (0,)),
        # More than the limit: the index is given up, the others go on.
        ([pod(0, "Failed", 1), pod(0, "Failed", 1), pod(1, "Running")], (2,)),
        # Neither counts.
        ([pod(0, "Failed", 137, "DisruptionTarget")] * 5 + [pod(1, "Running")], (0,)),
        ([pod(0, "Failed", 75)] * 5 + [pod(1, "Running")], (0,)),
    ],
)
def test_a_pod_is_made_for_each_index_that_needs_one(pods: Any, missing: Any) -> None:
    assert indexed_jobs.progress_of(job(), pods).missing == missing


def test_it_ends_when_each_index_has_succeeded_or_failed() -> None:
    pods = [pod(0, "Succeeded"), pod(2, "Succeeded"), pod(1, "Failed", 1), pod(1, "Failed", 1)]
    progress = indexed_jobs.progress_of(job(), pods)
    assert progress.failure == ("FailedIndexes", "Job has failed indexes")
    assert indexed_jobs.status_of(progress) == {
        "succeeded": 2,
        "completedIndexes": "0,2",
        "failedIndexes": "1",
    }


def test_a_policy_fails_the_whole_job() -> None:
    progress = indexed_jobs.progress_of(job(), [pod(0, "Running"), pod(1, "Failed", 78)])
    assert progress.missing == ()
    assert progress.failure == ("PodFailurePolicy", "Pod n/j-1 matched FailJob rule at index 2")


def test_containers_know_their_index() -> None:
    (container,) = indexed_jobs.template_of(job(), 2)["containers"]
    (variable,) = container["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert indexed_jobs.INDEX in variable["valueFrom"]["fieldRef"]["fieldPath"]


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 4, 6, 7), "0-2,4,6-7")]
)
def test_indexes_are_written_as_ranges(indexes: tuple[int, ...], text: str) -> None:
    assert indexed_jobs.ranges(frozenset(indexes)) == text
