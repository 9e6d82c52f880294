"""The readings of a running step: what was counted of both sides since it was last stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.guards.domain import sequential_tests
from deployments.guards.domain import synthetic_requests as guard_synthetic_requests
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.sequential_tests import Side, StepTests
from deployments.models import Revision, Rollout
from deployments.plans.domain import rollout_plan
from deployments.rollouts.domain.observation import RolloutPlan
from deployments.rollouts.services import gpu_facts
from deployments.serving.selectors import synthetic_requests as own_rows
from fleet.telemetry.selectors import requests

_JUST_AFTER: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Read:
    """`seen` are the latest readings that ever came of each side at this step."""

    tests: StepTests
    until: datetime | None
    stable_at: datetime | None
    candidate_at: datetime | None
    is_new: bool
    # Requests of the portal itself that no reading has shown yet.
    owed: tuple[int, int] = (0, 0)
    # The last reading that showed requests of users.
    busy_at: datetime | None = None

    @property
    def is_known(self) -> bool:
        return self.stable_at is not None and self.candidate_at is not None


def read(rollout: Rollout, plan: RolloutPlan) -> Read:
    """The tests with what was counted since they were last stored."""
    stored, started_at = rollout.tests, plan.step_started_at
    nothing = Read(StepTests(), None, None, None, is_new=False)
    if started_at is None:
        return nothing
    before = nothing
    if stored.get("step") == _step_key(plan):
        before = Read(
            tests=sequential_tests.from_json(stored),
            until=_time(stored["until"]),
            stable_at=_time(stored["stable_at"]),
            candidate_at=_time(stored["candidate_at"]),
            is_new=False,
            owed=tuple(stored.get("owed", (0, 0))),
            busy_at=_time(stored.get("busy_at")),
        )
    since = started_at if before.until is None else before.until + _JUST_AFTER
    return _advance(rollout, before, since, started_at=started_at)


def _advance(rollout: Rollout, before: Read, since: datetime, *, started_at: datetime) -> Read:
    stable = _seen(rollout, rollout.stable_revision, since)
    candidate = _seen(rollout, rollout.candidate_revision, since)
    new = [seen.latest_at for seen in (stable, candidate) if seen.latest_at is not None]
    if not new:
        return before
    limits = rollout_plan.from_json(rollout.plan).guards
    of_stable, stable_owed = _of_users(rollout.stable_revision, stable, since, before.owed[0])
    of_candidate, owed = _of_users(rollout.candidate_revision, candidate, since, before.owed[1])
    tests = sequential_tests.advance(
        before.tests,
        Side(of_stable, of_candidate),
        limits=limits,
        stable=gpu_facts.facts_of(rollout, rollout.stable_revision, limits),
        candidate=gpu_facts.facts_of(rollout, rollout.candidate_revision, limits),
        is_within_step=all(
            seen.begins_at is None or seen.begins_at >= started_at for seen in (stable, candidate)
        ),
    )
    return replace(
        before,
        tests=tests,
        until=max(new),
        stable_at=stable.latest_at or before.stable_at,
        candidate_at=candidate.latest_at or before.candidate_at,
        is_new=True,
        owed=(stable_owed, owed),
        busy_at=max(new) if of_stable.requests + of_candidate.requests else before.busy_at,
    )


def _of_users(
    revision: Revision, seen: requests.RequestCounts, since: datetime, owed: int
) -> tuple[Sums, int]:
    """Without what the portal itself asked in the time that was read."""
    sums = _sums(seen)
    if seen.latest_at is None:
        return sums, owed
    begins_at = since if seen.begins_at is None else seen.begins_at
    return guard_synthetic_requests.without(
        sums, owed + own_rows.count(revision, begins_at, seen.latest_at)
    )


def _seen(rollout: Rollout, revision: Revision, since: datetime) -> requests.RequestCounts:
    deployment = rollout.deployment
    return requests.counts_since(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=f"{deployment.name}-r{revision.number}",
        since=since,
    )


def _sums(seen: requests.RequestCounts) -> Sums:
    return Sums(
        success=seen.success,
        failure=seen.failure,
        inferences=seen.inferences,
        duration_us=seen.duration_us,
        queue_us=seen.queue_us,
        busy_ms=seen.busy_ms,
        observed_ms=seen.observed_ms,
    )


def to_json(plan: RolloutPlan, read: Read) -> dict[str, Any]:
    times = {
        "until": read.until,
        "stable_at": read.stable_at,
        "candidate_at": read.candidate_at,
        "busy_at": read.busy_at,
    }
    return {
        "step": _step_key(plan),
        **{name: at.isoformat() if at else None for name, at in times.items()},
        "owed": list(read.owed),
        **read.tests.to_json(),
    }


def _step_key(plan: RolloutPlan) -> str:
    """A step that begins again, after a pause before traffic, counts anew."""
    started_at = plan.step_started_at
    return f"{plan.step_index} {started_at.isoformat() if started_at else ''}"


def _time(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored)
