"""The counters of a running step: what both sides did since the tests were last stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from deployments.guards.domain import sequential_tests
from deployments.guards.domain import synthetic_requests as guard_synthetic_requests
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.sequential_tests import Side, StepTests
from deployments.models import Revision, Rollout
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import gpu_facts
from deployments.serving.selectors import synthetic_requests
from fleet.telemetry.selectors import requests
from fleet.telemetry.selectors.requests import RequestCounts

_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class CounterReadings:
    """What `Rollout.tests` stores of one step. The times are of the latest readings of each side."""

    tests: StepTests = field(default_factory=StepTests)
    until: datetime | None = None
    stable_at: datetime | None = None
    candidate_at: datetime | None = None
    # Synthetic requests of each side that no reading has shown yet.
    owed: tuple[int, int] = (0, 0)
    # The last reading that showed requests of users.
    busy_at: datetime | None = None
    # Whether there is something to store.
    is_new: bool = False

    @property
    def is_known(self) -> bool:
        return self.stable_at is not None and self.candidate_at is not None

    def to_json(self, step_key: str) -> dict[str, Any]:
        times = {
            "until": self.until,
            "stable_at": self.stable_at,
            "candidate_at": self.candidate_at,
            "busy_at": self.busy_at,
        }
        return {
            "step": step_key,
            **{name: at.isoformat() if at else None for name, at in times.items()},
            "owed": list(self.owed),
            **self.tests.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], step_key: str) -> Self:
        """The stored readings; empty when they are of another step."""
        if stored.get("step") != step_key:
            return cls()
        return cls(
            tests=sequential_tests.from_json(stored),
            until=_time(stored["until"]),
            stable_at=_time(stored["stable_at"]),
            candidate_at=_time(stored["candidate_at"]),
            owed=tuple(stored["owed"]),
            busy_at=_time(stored["busy_at"]),
        )


def read(snapshot: RolloutSnapshot) -> CounterReadings:
    """The stored readings, advanced by what was counted since."""
    started_at = snapshot.progress.step_started_at
    if started_at is None:
        return CounterReadings()
    before = CounterReadings.from_json(snapshot.rollout.tests, snapshot.progress.step_key)
    since = started_at if before.until is None else before.until + _TICK
    return _advance(snapshot, before, since, started_at=started_at)


def _advance(
    snapshot: RolloutSnapshot, before: CounterReadings, since: datetime, *, started_at: datetime
) -> CounterReadings:
    rollout, limits = snapshot.rollout, snapshot.plan.guards.limits
    stable = _counts_since(rollout, rollout.stable_revision, since)
    candidate = _counts_since(rollout, rollout.candidate_revision, since)
    new = [counts.latest_at for counts in (stable, candidate) if counts.latest_at is not None]
    if not new:
        return before
    of_stable, stable_owed = _of_users(rollout.stable_revision, stable, since, before.owed[0])
    of_candidate, owed = _of_users(rollout.candidate_revision, candidate, since, before.owed[1])
    tests = sequential_tests.advance(
        before.tests,
        Side(of_stable, of_candidate),
        limits=limits,
        stable=gpu_facts.facts_of(rollout, rollout.stable_revision, limits),
        candidate=gpu_facts.facts_of(rollout, rollout.candidate_revision, limits),
        is_within_step=all(
            counts.begins_at is None or counts.begins_at >= started_at
            for counts in (stable, candidate)
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
    revision: Revision, counts: RequestCounts, since: datetime, owed: int
) -> tuple[Sums, int]:
    """The reading without the synthetic requests of its interval."""
    sums = _sums(counts)
    if counts.latest_at is None:
        return sums, owed
    begins_at = since if counts.begins_at is None else counts.begins_at
    return guard_synthetic_requests.without(
        sums, owed + synthetic_requests.count(revision, begins_at, counts.latest_at)
    )


def _counts_since(rollout: Rollout, revision: Revision, since: datetime) -> RequestCounts:
    deployment = rollout.deployment
    return requests.counts_since(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=f"{deployment.name}-r{revision.number}",
        since=since,
    )


def _sums(counts: RequestCounts) -> Sums:
    return Sums(
        success=counts.success,
        failure=counts.failure,
        inferences=counts.inferences,
        duration_us=counts.duration_us,
        queue_us=counts.queue_us,
        busy_ms=counts.busy_ms,
        observed_ms=counts.observed_ms,
    )


def _time(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored)
