"""The state of a rollout's guards on Prometheus and on the gateway, stored between readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from deployments.guards.domain import histograms, lost_requests, percentile_tests, promql
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.histograms import NO_SOURCE, SOURCES, InstanceCounts, Source
from deployments.guards.domain.load import LoadDifference
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryGuard, QueryTarget, Watched
from deployments.guards.domain.sequential_tests import Procedure
from fleet.clusters.domain.prometheus import PrometheusError, QueryResult

Reading = QueryResult | PrometheusError
SIDES: Final = ("stable", "candidate")


@dataclass(frozen=True, slots=True)
class State:
    """`source` is the first histogram that had data and is kept for the rollout; `counts` its counts
    at the last reading of this step, by side. `problem`: why the last reading of it gave nothing.
    """

    source: str = ""
    counts: Mapping[str, InstanceCounts] = field(default_factory=dict)
    tests: PercentileTests = field(default_factory=PercentileTests)
    problem: str = ""
    query: str = ""
    histogram_at: datetime | None = None
    watched: Mapping[str, Watched] = field(default_factory=dict)
    gateway: GatewayState = field(default_factory=GatewayState)

    def to_json(self) -> dict[str, Any]:
        at = self.histogram_at
        return {
            "source": self.source,
            "counts": {side: _counts_to_json(counts) for side, counts in self.counts.items()},
            "tests": self.tests.to_json(),
            "problem": self.problem,
            "query": self.query,
            "histogram_at": at.isoformat() if at else None,
            "watched": {name: watched.to_json() for name, watched in self.watched.items()},
            "gateway": self.gateway.to_json(),
        }


def from_json(stored: Mapping[str, Any]) -> State:
    if not stored:
        return State()
    at = stored["histogram_at"]
    return State(
        source=stored["source"],
        counts={side: _counts(counts) for side, counts in stored["counts"].items()},
        tests=percentile_tests.from_json(stored["tests"]),
        problem=stored["problem"],
        query=stored["query"],
        histogram_at=datetime.fromisoformat(at) if at else None,
        watched={
            name: promql.watched_from_json(watched) for name, watched in stored["watched"].items()
        },
        gateway=lost_requests.from_json(stored["gateway"]),
    )


@dataclass(frozen=True, slots=True)
class Sides:
    """The values of placeholders for each revision."""

    stable: QueryTarget
    candidate: QueryTarget

    def of(self, side: str) -> QueryTarget:
        return self.stable if side == "stable" else self.candidate


def next_step(
    state: State,
    guards: tuple[PercentileGuard, ...],
    procedure: Procedure,
    lengths: BlockLengths,
) -> State:
    """The state at the beginning of a step: the capital of the tests is that of the rollout. The
    procedure is that of the limits on what the gateway counts.
    """
    tests = percentile_tests.next_step(
        state.tests, guards, procedure.payoff, block_seconds=lengths.means
    )
    gateway = lost_requests.next_step(state.gateway, procedure, lengths)
    return State(source=state.source, tests=tests, gateway=gateway)


def with_lengths(state: State, lengths: BlockLengths) -> State:
    """The state with blocks of a step that were chosen anew, once more was known of stable."""
    gateway = lost_requests.with_lengths(state.gateway, lengths)
    tests = percentile_tests.with_blocks(state.tests, lengths.means)
    return replace(state, tests=tests, gateway=gateway)


def histogram_queries(state: State, sides: Sides) -> list[str]:
    """Queries for stable and candidate, for each possible source, in the order of
    `take_histograms`.
    """
    return [
        promql.fill(source.query, sides.of(side)) for source in _sources(state) for side in SIDES
    ]


def take_histograms(
    state: State,
    guards: tuple[PercentileGuard, ...],
    readings: list[Reading],
    sides: Sides,
    at: datetime,
    payoff: Payoff = Payoff.CAPPED,
    load: LoadDifference = LoadDifference.NONE,
) -> State:
    """Update the state by one reading. The first source that has both sides is kept."""
    problem = ""
    for source, pair in zip(_sources(state), _pairs(readings), strict=True):
        counts, problem = _both(source, pair)
        if not problem:
            return _with(state, guards, source, counts, sides, at, payoff, load)
    failure = next(
        (reading.message for reading in readings if isinstance(reading, PrometheusError)), ""
    )
    return replace(state, problem=failure or (problem if state.source else NO_SOURCE))


def take_query(
    state: State, guard: QueryGuard, reading: Reading, *, query: str, at: datetime
) -> State:
    before = state.watched.get(guard.name, Watched())
    after = promql.take(before, guard, reading, query=query, at=at)
    return replace(state, watched={**state.watched, guard.name: after})


def _with(
    state: State,
    guards: tuple[PercentileGuard, ...],
    source: Source,
    counts: dict[str, InstanceCounts],
    sides: Sides,
    at: datetime,
    payoff: Payoff,
    load: LoadDifference,
) -> State:
    since = state.histogram_at
    before = histograms.counted(counts["stable"])
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
            guards=guards,
            seconds=(at - since).total_seconds() if since else 0.0,
            payoff=payoff,
            load=load,
        ),
        problem="",
        query=promql.fill(source.query, sides.candidate),
        histogram_at=at,
    )


def _sources(state: State) -> tuple[Source, ...]:
    chosen = histograms.source_named(state.source)
    return SOURCES if chosen is None else (chosen,)


def _pairs(readings: list[Reading]) -> list[tuple[Reading, Reading]]:
    return list(zip(readings[::2], readings[1::2], strict=True))


def _both(source: Source, pair: tuple[Reading, Reading]) -> tuple[dict[str, InstanceCounts], str]:
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
