"""The state of a rollout's guards on Prometheus and on the gateway, stored between readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from deployments.guards.domain import histogram_state, lost_requests, percentile_tests, promql
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.histogram_state import HistogramState, Reading
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryGuard, Watched
from deployments.guards.domain.sequential_tests import Procedure

_UNREAD = HistogramState()


@dataclass(frozen=True, slots=True)
class State:
    """The state of guards between readings: `histograms` by what they count, `watched` by the name of the query."""

    histograms: Mapping[Measure, HistogramState] = field(default_factory=dict)
    watched: Mapping[str, Watched] = field(default_factory=dict)
    gateway: GatewayState = field(default_factory=GatewayState)

    def histogram(self, measure: Measure) -> HistogramState:
        return self.histograms.get(measure, _UNREAD)

    def with_histogram(self, measure: Measure, state: HistogramState) -> State:
        return replace(self, histograms={**self.histograms, measure: state})

    def to_json(self) -> dict[str, Any]:
        return {
            "histograms": {measure: state.to_json() for measure, state in self.histograms.items()},
            "watched": {name: watched.to_json() for name, watched in self.watched.items()},
            "gateway": self.gateway.to_json(),
        }


def from_json(stored: Mapping[str, Any]) -> State:
    if not stored:
        return State()
    return State(
        histograms={
            Measure(measure): histogram_state.from_json(state)
            for measure, state in stored["histograms"].items()
        },
        watched={
            name: promql.watched_from_json(watched) for name, watched in stored["watched"].items()
        },
        gateway=lost_requests.from_json(stored["gateway"]),
    )


def filter_by_measure(
    guards: Iterable[PercentileGuard], measure: Measure
) -> tuple[PercentileGuard, ...]:
    return tuple(guard for guard in guards if guard.kind.measure == measure)


def next_step(
    state: State,
    guards: tuple[PercentileGuard, ...],
    procedure: Procedure,
    lengths: BlockLengths,
) -> State:
    """Return the state at the beginning of a step; the tests keep the capital of the rollout.

    The procedure is that of the limits on what the gateway counts.
    """
    histograms = {
        measure: histogram_state.next_step(
            state.histogram(measure),
            filter_by_measure(guards, measure),
            procedure.payoff,
            block_seconds=lengths.means,
        )
        # Of a measure that was never read too: its blocks are as long as those of the others.
        for measure in Measure
        if measure in state.histograms or filter_by_measure(guards, measure)
    }
    gateway = lost_requests.next_step(state.gateway, procedure, lengths)
    return State(histograms=histograms, gateway=gateway)


def with_lengths(state: State, lengths: BlockLengths) -> State:
    """Return the state with the blocks of a step chosen anew, once more was known of stable."""
    histograms = {
        measure: replace(of, tests=percentile_tests.with_blocks(of.tests, lengths.means))
        for measure, of in state.histograms.items()
    }
    gateway = lost_requests.with_lengths(state.gateway, lengths)
    return replace(state, histograms=histograms, gateway=gateway)


def take_query(
    state: State, guard: QueryGuard, reading: Reading, *, query: str, at: datetime
) -> State:
    before = state.watched.get(guard.name, Watched())
    after = promql.take(before, guard, reading, query=query, at=at)
    return replace(state, watched={**state.watched, guard.name: after})
