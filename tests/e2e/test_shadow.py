"""Shadows of real models: Envoy copies requests to a real Triton, and users notice nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.canaries import Scene
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person
from tests.fixtures.onnx_models import Kind
from tests.waiting import wait_for

HALF = [{"weight": 50, "soak_seconds": 0, "min_requests": 30}]


def _promotable(scene: Scene, rollout_id: int) -> dict[str, Any]:
    def read() -> dict[str, Any] | None:
        rollout = scene.read_rollout(rollout_id)
        assert not rollout["is_final"], rollout["phase_reason"]
        is_there = rollout["observed_mirror"] == 50 and rollout["is_promotable"]
        return rollout if is_there else None

    return wait_for("promotable mirror of 50%", read)


def _sent_away(scene: Scene, rollout_id: int) -> dict[str, Any]:
    def read() -> dict[str, Any] | None:
        rollout = scene.read_rollout(rollout_id)
        return rollout if rollout["phase"] in ("aborting", "aborted") else None

    return wait_for("automatic abort", read)


@pytest.fixture
def scene(demo: DemoProcess, member: Person, lead: Person, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(demo, member, lead, tmp_path, name="shadowed")
    scene.begin(Kind(rounds=2))
    yield scene
    scene.retire()


def test_a_good_shadow_takes_over_and_a_shadow_that_fails_every_request_affects_no_user(
    scene: Scene, member: Person, lead: Person
) -> None:
    good = scene.upload("good", Kind(rounds=2, note="better"))
    bad = scene.upload("bad", Kind(rounds=2, fails_on_mark=True))

    with scene.load(25, marked_share=1.0) as load:
        first = scene.start(good, HALF, kind="shadow")
        shown = _promotable(scene, first)
        assert (shown["requested_weight"], shown["observed_weight"]) == (0, 0)
        assert shown["candidate_requests"] >= 30
        assert shown["share_low"] <= shown["observed_share"] <= shown["share_high"]
        scene.promote(shown, fully=True)
        scene.wait_for_phase(first, "completed")

        second = scene.start(bad, HALF, kind="shadow")
        sent_away = _sent_away(scene, second)

    assert load.counted.answered == load.counted.sent > 0, load.counted.failures
    assert sent_away["requested_mirror"] == 0
    assert sent_away["candidate_requests"] > 0
    events = lead.get(f"rollouts/{second}/events")["events"]
    why = next(event["message"] for event in events if event["kind"] == "aborting")
    assert "mirrored requests failed" in why
    assert why.endswith("; users only got answers from the stable revision")
    deployment = member.get(f"deployments/{scene.deployment['id']}")
    assert deployment["desired"]["stable"]["version_id"] == good["id"]
    assert deployment["desired"]["candidate_weight"] == 0
    scene.wait_for_phase(second, "aborted")
