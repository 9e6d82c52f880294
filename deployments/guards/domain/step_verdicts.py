"""All guards of a plan at one step: what was read, source by source, becomes one result for each guard.

This is the only way from readings to results. How a source is read is the business of
`deployments/rollouts`; what its numbers mean is that of the family of the guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from deployments.guards.domain import (
    counter_verdicts,
    formatting,
    histogram_sources,
    histograms,
    lost_requests,
    percentile_verdicts,
    promql,
    reference,
)
from deployments.guards.domain.counters import NO_FACTS, SideFacts
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.guard_set import AnyLimits, PlanGuards
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.promql import QueryGuard, Watched
from deployments.guards.domain.reference import Reference
from deployments.guards.domain.step_tests import StepTests


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """The terms by which a plan judges at a step. `alpha` is what one test may spend.

    `recorded` is what stable showed before, for a step in which it gets no requests, else None. `load` is None if
    there is no stable side.
    """

    alpha: float
    is_strict: bool
    min_requests: int
    is_mirrored: bool = False
    load: PodLoad | None = None
    recorded: Reference | None = None


@dataclass(frozen=True, slots=True)
class StepReadings:
    """The readings at a step. `unknown` says of each source why there are no current numbers, of each histogram by
    what it counts, and of each query by its name.

    `warming` says why times are not judged yet.
    """

    counters: StepTests = field(default_factory=StepTests)
    stable: SideFacts = NO_FACTS
    candidate: SideFacts = NO_FACTS
    warming: str = ""
    state: State = field(default_factory=State)
    unknown: Mapping[Reads, str] = field(default_factory=dict)
    unknown_histograms: Mapping[Measure, str] = field(default_factory=dict)
    unknown_queries: Mapping[str, str] = field(default_factory=dict)

    def why_unknown(self, source: Reads) -> str:
        return self.unknown.get(source, "")


def judge(guards: PlanGuards, readings: StepReadings, terms: PlanTerms) -> tuple[GuardResult, ...]:
    """Return one result for each guard, by source and in the order of the plan."""
    return tuple(
        replace(_judge(guard, readings, terms), is_dry_run=guard.dry_run)
        for source in Reads
        for guard in guards.reading(source)
    )


def format_limit(guard: AnyLimits) -> str:
    """Format the limit as the plan states it, before anything was read."""
    if isinstance(guard, GuardLimit):
        return formatting.format_limit(guard, None)
    if isinstance(guard, PercentileGuard):
        return percentile_verdicts.format_limit(guard)
    return f"{guard.limit_text}, {guard.breaches} breaches in a row"


def _judge(guard: AnyLimits, readings: StepReadings, terms: PlanTerms) -> GuardResult:
    if isinstance(guard, PercentileGuard):
        return _judge_percentile(guard, readings, terms)
    if isinstance(guard, QueryGuard):
        watched = readings.state.watched.get(guard.name, Watched())
        return promql.judge(guard, watched, unknown=readings.unknown_queries.get(guard.name, ""))
    return _COUNTED[guard.kind.reads](guard, readings, terms)


def _judge_server(limit: GuardLimit, readings: StepReadings, terms: PlanTerms) -> GuardResult:
    by = _inputs(readings.counters, readings.why_unknown(Reads.SERVER), terms)
    by = replace(by, stable=readings.stable, candidate=readings.candidate, load=terms.load)
    result = _judge_counters(limit, by, terms)
    is_waiting = result.verdict == Verdict.NOT_ENOUGH and limit.kind.is_timed
    return replace(result, message=readings.warming) if readings.warming and is_waiting else result


def _judge_counters(
    limit: GuardLimit, by: counter_verdicts.CounterInputs, terms: PlanTerms
) -> GuardResult:
    if terms.recorded is None:
        return counter_verdicts.judge((limit,), by)[0]
    # Beside what stable showed before: it gets no requests any more.
    absolute = reference.absolute(limit, terms.recorded)
    if absolute is None:
        return reference.not_recorded(limit)
    result = counter_verdicts.judge((absolute,), by)[0]
    return reference.describe_result(result, limit, terms.recorded)


def _judge_gateway(limit: GuardLimit, readings: StepReadings, terms: PlanTerms) -> GuardResult:
    gateway = readings.state.gateway
    by = _inputs(gateway.tests, readings.why_unknown(Reads.GATEWAY), terms)
    return lost_requests.judge(limit, gateway, by, is_alone=terms.recorded is not None)


def _inputs(tests: StepTests, unknown: str, terms: PlanTerms) -> counter_verdicts.CounterInputs:
    return counter_verdicts.CounterInputs(
        tests=tests,
        alpha=terms.alpha,
        is_strict=terms.is_strict,
        min_requests=terms.min_requests,
        unknown=unknown,
        is_mirrored=terms.is_mirrored,
    )


_COUNTED: Final[Mapping[Reads, Callable[[GuardLimit, StepReadings, PlanTerms], GuardResult]]] = {
    Reads.SERVER: _judge_server,
    Reads.GATEWAY: _judge_gateway,
}


def _judge_percentile(
    guard: PercentileGuard, readings: StepReadings, terms: PlanTerms
) -> GuardResult:
    measure = guard.kind.measure
    state = readings.state.histogram(measure)
    source = histogram_sources.find_source(measure, state.source)
    by = percentile_verdicts.PercentileInputs(
        tests=state.tests,
        alpha=terms.alpha,
        is_strict=terms.is_strict,
        min_requests=terms.min_requests,
        source=source.label if source else "",
        query=state.query,
        at=state.at,
        unknown=readings.unknown_histograms.get(measure, ""),
        load=terms.load,
    )
    if terms.recorded is None:
        return percentile_verdicts.judge(guard, by)
    absolute = reference.absolute_percentile(guard, terms.recorded)
    if absolute is None:
        return reference.not_recorded(guard)
    before = histograms.bucket_of(terms.recorded.histogram(measure), guard.kind.quantile)
    stable = f"{histograms.format_bucket(before)} before"
    return replace(percentile_verdicts.judge(absolute, by), stable=stable)
