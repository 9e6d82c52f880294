"""A canary that is compared with a baseline, under load: real servers behind the real gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.canaries import Scene
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import INSTANCE_TYPE, Person
from tests.fixtures.onnx_models import Kind
from tests.waiting import wait_for

STABLE = Kind(rounds=4)
STEPS = [{"weight": 10, "soak_seconds": 0, "min_requests": 50}]


@pytest.fixture
def scene(demo: DemoProcess, member: Person, lead: Person, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(demo, member, lead, tmp_path, name="compared")
    scene.begin(STABLE, instance_type=INSTANCE_TYPE)
    yield scene
    scene.retire()


def test_stable_baseline_and_candidate_answer_and_only_the_candidate_stays(scene: Scene) -> None:
    again = scene.upload("again", Kind(rounds=STABLE.rounds, note="v2"))

    with scene.load(30) as load:
        rollout_id = scene.start(again, STEPS, has_baseline=True)
        shown = scene.wait_until_promotable(rollout_id, 10)
        requests = wait_for("requests of the three", lambda: requests_by_role(scene))
        scene.promote(shown, fully=True)
        scene.wait_for_phase(rollout_id, "completed")
        wait_for("one revision", lambda: roles(scene) == {"stable"})

    assert load.counted.failures == {}
    assert load.counted.answered == load.counted.sent > 100
    assert requests["candidate"] * 0.5 < requests["baseline"] < requests["candidate"] * 2
    assert requests["stable"] > requests["baseline"] * 4


def requests_by_role(scene: Scene) -> dict[str, int] | None:
    """Of the last minutes; None while one of the three has too few to say anything."""
    counted = {row["role"]: row["stats"]["success"] for row in rows(scene) if row["stats"]}
    is_enough = len(counted) == 3 and min(counted.values()) > 50
    return counted if is_enough else None


def roles(scene: Scene) -> set[str]:
    return {row["role"] for row in rows(scene)}


def rows(scene: Scene) -> list[dict[str, Any]]:
    shown = scene.lead.get(f"deployments/{scene.deployment['id']}/stats")
    return list(shown["revisions"])
