"""Which phases of a rollout have more time while its pods wait in a queue."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from deployments.rollouts.domain import decide
from deployments.rollouts.domain.observation import (
    RolloutObservation,
    RolloutProgress,
    TrafficSplit,
)
from deployments.rollouts.services import queueing, transitions
from deployments.states import RolloutPhase

NOW = datetime(2026, 7, 25, 12, tzinfo=UTC)
TIME = timedelta(seconds=decide.PREPARE_SECONDS)
OBSERVED = RolloutObservation(
    is_current=True, weight=0, is_candidate_ready=False, is_stable_ready=True, is_queued=True
)


def progress(phase: RolloutPhase, left: timedelta, **changed: Any) -> RolloutProgress:
    plan: Any = SimpleNamespace()
    return RolloutProgress(
        plan=plan,
        phase=phase,
        step_index=0,
        step_started_at=None,
        phase_deadline_at=NOW + left,
        desired=TrafficSplit(0),
        is_candidate_desired=True,
        is_swapped=False,
        drain_started_at=None,
        **changed,
    )


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []

    def mark(_: Any, fields: dict[str, Any]) -> bool:
        written.append(fields)
        return True

    monkeypatch.setattr(transitions, "mark", mark)
    return written


def prolonged(of: RolloutProgress, observed: RolloutObservation = OBSERVED) -> datetime:
    snapshot: Any = SimpleNamespace(progress=of, rollout=None)
    return queueing.extend_deadline(snapshot, observed, NOW).phase_deadline_at


@pytest.mark.parametrize(
    "waiting",
    [
        progress(RolloutPhase.PREPARING, timedelta(minutes=1)),
        progress(RolloutPhase.PREPARING, timedelta(minutes=-1)),
        progress(RolloutPhase.RUNNING, timedelta(minutes=1), promoted_to=1),
    ],
)
def test_what_waits_for_pods_has_its_whole_time_again(
    waiting: RolloutProgress, marked: list[dict[str, Any]]
) -> None:
    assert prolonged(waiting) == NOW + TIME
    assert marked == [{"deadline_at": NOW + TIME}]


@pytest.mark.parametrize(
    ("waiting", "observed"),
    [
        # A person decides on this step.
        (progress(RolloutPhase.RUNNING, timedelta(minutes=1)), OBSERVED),
        (progress(RolloutPhase.PROMOTING, timedelta(minutes=1)), OBSERVED),
        # Not every pass writes.
        (progress(RolloutPhase.PREPARING, TIME - timedelta(minutes=1)), OBSERVED),
        # Not ready for another reason.
        (
            progress(RolloutPhase.PREPARING, timedelta(minutes=1)),
            replace(OBSERVED, is_queued=False),
        ),
    ],
)
def test_everything_else_keeps_its_deadline(
    waiting: RolloutProgress, observed: RolloutObservation, marked: list[dict[str, Any]]
) -> None:
    assert prolonged(waiting, observed) == waiting.phase_deadline_at
    assert marked == []
