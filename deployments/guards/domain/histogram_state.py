"""One histogram of a rollout between readings: where it comes from, its last counts and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from deployments.guards.domain import histogram_sources, histograms, percentile_tests, promql
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.histogram_sources import NO_SOURCE, SOURCES, HistogramSource
from deployments.guards.domain.histograms import InstanceCounts
from deployments.guards.domain.load import LoadDifference
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import Sides
from fleet.clusters.domain.prometheus import PrometheusError, QueryResult

Reading = QueryResult | PrometheusError
Guards = tuple[PercentileGuard, ...]
SIDES: Final = ("stable", "candidate")


@dataclass(frozen=True, slots=True)
class HistogramState:
    """One histogram of a rollout. `source` is the first that had data and is kept for the rollout.

    `counts` are its counts at the last reading of this step, by side. `problem` says why the last reading gave
    nothing.
    """

    source: str = ""
    counts: Mapping[str, InstanceCounts] = field(default_factory=dict)
    tests: PercentileTests = field(default_factory=PercentileTests)
    problem: str = ""
    query: str = ""
    at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "counts": {side: _counts_to_json(counts) for side, counts in self.counts.items()},
            "tests": self.tests.to_json(),
            "problem": self.problem,
            "query": self.query,
            "at": self.at.isoformat() if self.at else None,
        }


def from_json(stored: Mapping[str, Any]) -> HistogramState:
    at = stored["at"]
    return HistogramState(
        source=stored["source"],
        counts={side: _counts(counts) for side, counts in stored["counts"].items()},
        tests=percentile_tests.from_json(stored["tests"]),
        problem=stored["problem"],
        query=stored["query"],
        at=datetime.fromisoformat(at) if at else None,
    )


def next_step(
    state: HistogramState, guards: Guards, payoff: Payoff, *, block_seconds: float
) -> HistogramState:
    """Return the state at the beginning of a step; the tests keep the capital of the rollout."""
    tests = percentile_tests.next_step(state.tests, guards, payoff, block_seconds=block_seconds)
    return HistogramState(source=state.source, tests=tests)


def queries(state: HistogramState, measure: Measure, sides: Sides) -> list[str]:
    """Return the queries for stable and candidate, for each possible source, in the order of `take`."""
    return [
        promql.fill(source.query, sides.get_side(side))
        for source in _sources(state, measure)
        for side in SIDES
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramTerms:
    """The terms of a reading at `at`. `guards` are those of this measure."""

    guards: Guards
    sides: Sides
    at: datetime
    payoff: Payoff = Payoff.CAPPED
    load: LoadDifference = LoadDifference.NONE


def take(
    state: HistogramState, measure: Measure, readings: list[Reading], terms: HistogramTerms
) -> HistogramState:
    """Update the state by one reading. The first source that has both sides is kept."""
    problem = ""
    pairs = zip(readings[::2], readings[1::2], strict=True)
    for source, pair in zip(_sources(state, measure), pairs, strict=True):
        counts, problem = _both(source, pair)
        if not problem:
            return _with(state, source, counts, terms)
    failure = next(
        (reading.message for reading in readings if isinstance(reading, PrometheusError)), ""
    )
    return replace(state, problem=failure or (problem if state.source else NO_SOURCE[measure]))


def _with(
    state: HistogramState,
    source: HistogramSource,
    counts: dict[str, InstanceCounts],
    terms: HistogramTerms,
) -> HistogramState:
    since = state.at
    before = histograms.sum_instances(counts["stable"])
    added = {side: histograms.increase(state.counts.get(side, {}), counts[side]) for side in SIDES}
    return replace(
        state,
        source=source.name,
        # An instance that is missing now keeps its last counts: it may come back.
        counts={side: {**state.counts.get(side, {}), **counts[side]} for side in SIDES},
        tests=percentile_tests.advance(
            percentile_tests.begin(state.tests, before),
            stable=added["stable"],
            candidate=added["candidate"],
            guards=terms.guards,
            seconds=(terms.at - since).total_seconds() if since else 0.0,
            payoff=terms.payoff,
            load=terms.load,
        ),
        problem="",
        query=promql.fill(source.query, terms.sides.candidate),
        at=terms.at,
    )


def _sources(state: HistogramState, measure: Measure) -> tuple[HistogramSource, ...]:
    chosen = histogram_sources.find_source(measure, state.source)
    return SOURCES[measure] if chosen is None else (chosen,)


def _both(
    source: HistogramSource, pair: tuple[Reading, Reading]
) -> tuple[dict[str, InstanceCounts], str]:
    counts: dict[str, InstanceCounts] = {}
    for side, reading in zip(SIDES, pair, strict=True):
        if isinstance(reading, PrometheusError):
            return {}, reading.message
        if reading.warnings:
            return {}, f"Prometheus warns that data may be missing: {reading.warnings[0]}"
        counts[side] = histograms.instance_counts(reading.samples, source.scale)
        if not counts[side]:
            return {}, f"Prometheus has no {source.label} of the {side} revision"
    return counts, ""


def _counts_to_json(by_instance: InstanceCounts) -> dict[str, dict[str, float]]:
    return {
        instance: {repr(bound): value for bound, value in by_bound.items()}
        for instance, by_bound in by_instance.items()
    }


def _counts(stored: Mapping[str, Mapping[str, float]]) -> dict[str, dict[float, float]]:
    return {
        instance: {float(bound): value for bound, value in counts.items()}
        for instance, counts in stored.items()
    }
