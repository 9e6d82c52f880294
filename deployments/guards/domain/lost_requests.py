"""Requests that never came back, as the gateway counted them at one step: the state of their test, and
the verdict.

They are judged by the bet on errors: two rates, of the requests that the gateway sent to each side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from deployments.guards.domain import (
    catalogue,
    counter_verdicts,
    counters,
    reference,
    sequential_tests,
    step_tests,
)
from deployments.guards.domain.betting.blocks import LENGTHS, BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import NO_FACTS, NO_SUMS, Sums
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.reference import Reference
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests
from fleet.telemetry.domain import gateway_metrics
from fleet.telemetry.domain.gateway_metrics import Passed, PassedByProxy

SIDES: Final = ("stable", "candidate")
LEAST_SECONDS: Final = float(LENGTHS[0])
NOT_COUNTED: Final = "requests that never return are not counted here"
_NOT_COMPARED: Final = (
    "the stable revision no longer gets requests, and none passed at an earlier step"
)


@dataclass(frozen=True, slots=True)
class GatewayState:
    """The state of the test on lost requests. `counts` are those of the last reading, by side and proxy.

    `problem` says why the last reading gave nothing; `is_countable` is False if no later one will give anything.
    `before` is stable's part of the last step in which it got requests, for a step in which it gets none.
    """

    counts: Mapping[str, PassedByProxy] = field(default_factory=dict)
    tests: StepTests = field(default_factory=StepTests)
    at: datetime | None = None
    problem: str = ""
    is_countable: bool = True
    before: Sums = NO_SUMS

    @property
    def sent(self) -> tuple[int, int]:
        """The requests of this step that the gateway sent to stable and to the candidate."""
        total = self.tests.total
        return total.stable.requests, total.candidate.requests

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": {
                side: {proxy: [passed.requests, passed.lost] for proxy, passed in counts.items()}
                for side, counts in self.counts.items()
            },
            "tests": self.tests.to_json(),
            "at": self.at.isoformat() if self.at else None,
            "problem": self.problem,
            "is_countable": self.is_countable,
            "before": self.before.to_json(),
        }


def from_json(stored: Mapping[str, Any]) -> GatewayState:
    if not stored:
        return GatewayState()
    return GatewayState(
        counts={
            side: {proxy: Passed(*passed) for proxy, passed in counts.items()}
            for side, counts in stored["counts"].items()
        },
        tests=step_tests.from_json(stored["tests"]),
        at=datetime.fromisoformat(stored["at"]) if stored["at"] else None,
        problem=stored["problem"],
        is_countable=stored["is_countable"],
        before=counters.from_json(stored["before"]),
    )


def next_step(state: GatewayState, procedure: Procedure, lengths: BlockLengths) -> GatewayState:
    """Return the state of a further step, which keeps only the capital of its tests."""
    stable = state.tests.total.stable
    after = GatewayState(
        tests=sequential_tests.next_step(state.tests, procedure, lengths),
        before=stable if stable.requests else state.before,
    )
    return with_lengths(after, lengths)


def with_lengths(state: GatewayState, lengths: BlockLengths) -> GatewayState:
    """Set the block lengths, of which none is one reading.

    Lengths come from failures that the server counted: losses may come in bursts where those do not, and nobody
    counted them before the rollout.
    """
    long = replace(lengths, errors=max(LEAST_SECONDS, lengths.errors))
    return replace(state, tests=replace(state.tests, lengths=long))


def limits_at(
    limits: tuple[GuardLimit, ...], state: GatewayState, *, is_alone: bool
) -> tuple[GuardLimit, ...]:
    """Return the limits of a step. `is_alone` means that stable gets no requests, so that its recorded figures are
    the reference.
    """
    if not is_alone:
        return limits
    recorded = _reference(state)
    absolute = (reference.absolute(limit, recorded) for limit in limits)
    return tuple(limit for limit in absolute if limit is not None)


def _reference(state: GatewayState) -> Reference:
    before = {
        kind.name: kind.value(state.before, NO_FACTS)
        for kind in catalogue.counter_kinds()
        if kind.reads == Reads.GATEWAY
    }
    return Reference(highest={name: value for name, value in before.items() if value is not None})


def without_reading(state: GatewayState, problem: str, *, is_countable: bool) -> GatewayState:
    return replace(state, problem=problem, is_countable=is_countable or state.at is not None)


def take(
    state: GatewayState,
    procedure: Procedure,
    counts: Mapping[str, PassedByProxy],
    at: datetime,
) -> GatewayState:
    """Update the state by one reading. `counts` are by side; a side that no proxy names yet has none."""
    known = {proxy for of_side in state.counts.values() for proxy in of_side}
    sums, kept = [], {}
    for side in SIDES:
        before, after = state.counts.get(side, {}), counts.get(side, {})
        # A proxy that was read before and had nothing of this side had counted none.
        starts = {proxy: Passed() for proxy in known} | dict(before)
        passed = gateway_metrics.increase(starts, after)
        sums.append(Sums(success=passed.requests - passed.lost, failure=passed.lost))
        kept[side] = gateway_metrics.merge_counts(before, after)
    seconds = (at - state.at).total_seconds() if state.at else 0.0
    tests = sequential_tests.advance(state.tests, Side(*sums), procedure=procedure, seconds=seconds)
    return GatewayState(counts=kept, tests=tests, at=at, before=state.before)


def judge(
    limit: GuardLimit, state: GatewayState, by: CounterInputs, *, is_alone: bool = False
) -> GuardResult:
    judged = limits_at((limit,), state, is_alone=is_alone)
    [result] = counter_verdicts.judge(judged or (limit,), by)
    if is_alone:
        result = reference.describe_result(result, limit, _reference(state))
    if not state.is_countable:
        message = f"{NOT_COUNTED}: {state.problem}"
        return replace(result, verdict=Verdict.NOT_KNOWN, message=message)
    if not judged:
        return replace(result, verdict=Verdict.NOT_KNOWN, message=_NOT_COMPARED)
    return result
