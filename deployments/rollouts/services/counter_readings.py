"""The counters of a running step: what both sides did since the tests were last stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from deployments.guards.domain import reference, sequential_tests, step_tests
from deployments.guards.domain import synthetic_requests as guard_synthetic_requests
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import LoadDifference, PodLoad
from deployments.guards.domain.reference import Reference
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests
from deployments.models import Revision, Rollout
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import gpu_facts, warm_ups
from deployments.serving.selectors import block_lengths as history
from deployments.serving.selectors import synthetic_requests
from fleet.telemetry.selectors import requests
from fleet.telemetry.selectors.request_counts import RequestCounts

_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class CounterReadings:
    """The readings that `Rollout.tests` stores: the capital of the rollout, and the rest of its present step.
    The times are of the latest readings of each side.
    """

    tests: StepTests = field(default_factory=StepTests)
    until: datetime | None = None
    stable_at: datetime | None = None
    candidate_at: datetime | None = None
    # Synthetic requests of each side that no reading has shown yet.
    owed: tuple[int, int] = (0, 0)
    # When each of the candidate's pods that got requests is warm, by the key of its row.
    warm_at: Mapping[int, datetime] = field(default_factory=dict)
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
            "warm_at": {str(pod_id): at.isoformat() for pod_id, at in self.warm_at.items()},
            **self.tests.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        if not stored:
            return cls()
        stored_times = stored["warm_at"].items()
        warm_at = {int(pod_id): datetime.fromisoformat(at) for pod_id, at in stored_times}
        return cls(
            warm_at=warm_at,
            tests=step_tests.from_json(stored),
            until=_time(stored["until"]),
            stable_at=_time(stored["stable_at"]),
            candidate_at=_time(stored["candidate_at"]),
            owed=tuple(stored["owed"]),
            busy_at=_time(stored["busy_at"]),
        )


def read(snapshot: RolloutSnapshot, load: PodLoad | None) -> CounterReadings:
    """Return the stored readings, advanced by what was counted since."""
    started_at, stored = snapshot.progress.step_started_at, snapshot.rollout.tests
    before = CounterReadings.from_json(stored)
    if stored.get("step") != snapshot.progress.step_key:
        before = CounterReadings(
            tests=sequential_tests.next_step(
                before.tests,
                _procedure(snapshot, snapshot.plan.guards.server_limits),
                block_lengths(snapshot, started_at),
            ),
            warm_at=before.warm_at,
        )
    if started_at is None:
        return before
    before = _with_lengths(snapshot, before)
    since = started_at if before.until is None else before.until + _TICK
    return _advance(snapshot, before, since, started_at=started_at, load=load)


def _procedure(snapshot: RolloutSnapshot, limits: tuple[GuardLimit, ...]) -> Procedure:
    rollout = snapshot.rollout
    return Procedure(
        limits=limits,
        payoff=snapshot.plan.analysis.payoff,
        stable=gpu_facts.facts_of(rollout, rollout.compared_revision, limits),
        candidate=gpu_facts.facts_of(rollout, rollout.candidate_revision, limits),
    )


def block_lengths(snapshot: RolloutSnapshot, started_at: datetime | None) -> BlockLengths:
    """Choose the lengths of blocks by stable's past before the step. They are stored with the step."""
    if started_at is None:
        return BlockLengths()
    return history.before(snapshot.rollout.stable_revision, started_at)


def lengths_chosen_anew(snapshot: RolloutSnapshot) -> BlockLengths | None:
    """Return the lengths that were chosen during this step, for other counts of it. None while those from
    before the step hold.
    """
    stored = snapshot.rollout.tests
    if stored.get("step") != snapshot.progress.step_key:
        return None
    lengths = CounterReadings.from_json(stored).tests.lengths
    return lengths if lengths.step_seconds else None


def _with_lengths(snapshot: RolloutSnapshot, before: CounterReadings) -> CounterReadings:
    """Choose the lengths of blocks anew once more is known of stable, up to the last reading: a block then ends
    no other way for what is read now.
    """
    tests, until = before.tests, before.until
    if until is None or not tests.lengths.is_outdated(tests.seconds):
        return before
    stable = snapshot.rollout.stable_revision
    lengths = history.before(stable, until, step_seconds=tests.seconds)
    return replace(before, tests=replace(tests, lengths=lengths))


def _advance(
    snapshot: RolloutSnapshot,
    before: CounterReadings,
    since: datetime,
    *,
    started_at: datetime,
    load: PodLoad | None,
) -> CounterReadings:
    rollout = snapshot.rollout
    compared = rollout.compared_revision
    stable = _counts_since(rollout, compared, since)
    candidate = _counts_since(rollout, rollout.candidate_revision, since)
    new = [counts.latest_at for counts in (stable, candidate) if counts.latest_at is not None]
    if not new:
        return before
    counted_of_stable, stable_owed = _of_users(compared, stable, since, before.owed[0])
    warm_at = warm_ups.advance(snapshot, before.warm_at)
    counted, owed = _of_users(rollout.candidate_revision, candidate, since, before.owed[1])
    of_candidate = warm_ups.without(counted, rollout.candidate_revision, since, warm_at)
    of_stable = counted_of_stable
    if rollout.baseline_revision is not None:
        # Its pods are as new as the candidate's.
        of_stable = warm_ups.without(counted_of_stable, compared, since, warm_at)
    tests = sequential_tests.advance(
        before.tests,
        Side(of_stable, of_candidate),
        uncut=Side(counted_of_stable, counted),
        others=_not_compared(rollout, since),
        procedure=_procedure(snapshot, _limits(snapshot)),
        seconds=(max(new) - (before.until or started_at)).total_seconds(),
        is_within_step=all(
            counts.begins_at is None or counts.begins_at >= started_at
            for counts in (stable, candidate)
        ),
        load=load.difference if load else LoadDifference.NONE,
    )
    return replace(
        before,
        tests=tests,
        until=max(new),
        stable_at=stable.latest_at or before.stable_at,
        candidate_at=candidate.latest_at or before.candidate_at,
        is_new=True,
        owed=(stable_owed, owed),
        warm_at=warm_at,
        busy_at=max(new) if of_stable.requests + of_candidate.requests else before.busy_at,
    )


def is_warming(rollout: Rollout) -> bool:
    """Whether a pod of the candidate warms up, as of the last analysis; none does before one."""
    return warm_ups.until(CounterReadings.from_json(rollout.tests).warm_at) is not None


def _limits(snapshot: RolloutSnapshot) -> tuple[GuardLimit, ...]:
    """Return the limits to judge. At a step without a stable side, they are those against its recorded figures."""
    limits = snapshot.plan.guards.server_limits
    if not snapshot.progress.is_alone:
        return limits
    recorded = Reference.from_json(snapshot.rollout.reference)
    absolute = (reference.absolute(limit, recorded) for limit in limits)
    return tuple(limit for limit in absolute if limit is not None)


def _of_users(
    revision: Revision, counts: RequestCounts, since: datetime, owed: int
) -> tuple[Sums, int]:
    """Return the reading without the synthetic requests of its interval."""
    sums = sums_of(counts)
    if counts.latest_at is None:
        return sums, owed
    begins_at = since if counts.begins_at is None else counts.begins_at
    return guard_synthetic_requests.without(
        sums, owed + synthetic_requests.count(revision, begins_at, counts.latest_at)
    )


def _not_compared(rollout: Rollout, since: datetime) -> int:
    """Return the requests of the stable revision where the candidate is compared with a baseline."""
    if rollout.baseline_revision is None:
        return 0
    counts = _counts_since(rollout, rollout.stable_revision, since)
    return counts.success + counts.failure


def _counts_since(rollout: Rollout, revision: Revision, since: datetime) -> RequestCounts:
    deployment = rollout.deployment
    return requests.counts_since(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=f"{deployment.name}-r{revision.number}",
        since=since,
    )


def sums_of(counts: RequestCounts) -> Sums:
    return Sums(
        success=counts.success,
        failure=counts.failure,
        inferences=counts.inferences,
        duration_us=counts.duration_us,
        queue_us=counts.queue_us,
        busy_ms=counts.busy_ms,
        observed_ms=counts.observed_ms,
        aborted=counts.aborted,
        tokens=counts.tokens,
        first_tokens=counts.first_tokens,
        first_token_us=counts.first_token_us,
        later_tokens=counts.later_tokens,
        later_token_us=counts.later_token_us,
    )


def _time(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored)
