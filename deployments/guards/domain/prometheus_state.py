"""All that the readings of one step say: folded reading by reading, stored between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from deployments.guards.domain import histograms, percentiles, promql
from deployments.guards.domain.histograms import NO_SOURCE, SOURCES, Seen, Source
from deployments.guards.domain.percentiles import PercentileGuard, PercentileTests
from deployments.guards.domain.promql import Place, QueryGuard, Watched
from fleet.clusters.domain.prometheus import PrometheusError, QueryResult

Found = QueryResult | PrometheusError
SIDES: Final = ("stable", "candidate")


@dataclass(frozen=True, slots=True)
class State:
    """`source` is the histogram that was found first and is kept for the step; `seen` its counts at
    the last reading, by side. `problem`: why the last reading of it said nothing.
    """

    source: str = ""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    tests: PercentileTests = field(default_factory=PercentileTests)
    problem: str = ""
    query: str = ""
    histogram_at: datetime | None = None
    watched: Mapping[str, Watched] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        at = self.histogram_at
        return {
            "source": self.source,
            "seen": {side: _seen_to_json(seen) for side, seen in self.seen.items()},
            "tests": self.tests.to_json(),
            "problem": self.problem,
            "query": self.query,
            "histogram_at": at.isoformat() if at else None,
            "watched": {name: one.to_json() for name, one in self.watched.items()},
        }


def from_json(stored: Mapping[str, Any]) -> State:
    if not stored:
        return State()
    at = stored["histogram_at"]
    return State(
        source=stored["source"],
        seen={side: _seen(found) for side, found in stored["seen"].items()},
        tests=percentiles.tests_from_json(stored["tests"]),
        problem=stored["problem"],
        query=stored["query"],
        histogram_at=datetime.fromisoformat(at) if at else None,
        watched={name: promql.watched_from_json(one) for name, one in stored["watched"].items()},
    )


@dataclass(frozen=True, slots=True)
class Sides:
    """What the placeholders stand for, as each revision's own workload."""

    stable: Place
    candidate: Place

    def of(self, side: str) -> Place:
        return self.stable if side == "stable" else self.candidate


def histogram_queries(state: State, sides: Sides) -> list[str]:
    """Of stable and candidate, for each source that may be the one; in the order of `take`."""
    return [
        promql.fill(source.query, sides.of(side)) for source in _sources(state) for side in SIDES
    ]


def take_histograms(
    state: State,
    guards: tuple[PercentileGuard, ...],
    found: list[Found],
    sides: Sides,
    at: datetime,
) -> State:
    """With one more reading. The first source that has both sides is the step's."""
    problem = ""
    for source, pair in zip(_sources(state), _pairs(found), strict=True):
        seen, problem = _both(source, pair)
        if not problem:
            return _with(state, guards, source, seen, sides, at)
    failure = next((one.message for one in found if isinstance(one, PrometheusError)), "")
    return replace(state, problem=failure or (problem if state.source else NO_SOURCE))


def take_query(state: State, guard: QueryGuard, found: Found, *, query: str, at: datetime) -> State:
    before = state.watched.get(guard.name, Watched())
    after = promql.take(before, guard, found, query=query, at=at)
    return replace(state, watched={**state.watched, guard.name: after})


def _with(
    state: State,
    guards: tuple[PercentileGuard, ...],
    source: Source,
    seen: dict[str, Seen],
    sides: Sides,
    at: datetime,
) -> State:
    added = {side: histograms.increase(state.seen.get(side, {}), seen[side]) for side in SIDES}
    return replace(
        state,
        source=source.name,
        # What is not seen now keeps its last counts: it may come back.
        seen={side: {**state.seen.get(side, {}), **seen[side]} for side in SIDES},
        tests=percentiles.advance(
            state.tests, stable=added["stable"], candidate=added["candidate"], guards=guards
        ),
        problem="",
        query=promql.fill(source.query, sides.candidate),
        histogram_at=at,
    )


def _sources(state: State) -> tuple[Source, ...]:
    chosen = histograms.source_named(state.source)
    return SOURCES if chosen is None else (chosen,)


def _pairs(found: list[Found]) -> list[tuple[Found, Found]]:
    return list(zip(found[::2], found[1::2], strict=True))


def _both(source: Source, pair: tuple[Found, Found]) -> tuple[dict[str, Seen], str]:
    seen: dict[str, Seen] = {}
    for side, found in zip(SIDES, pair, strict=True):
        if isinstance(found, PrometheusError):
            return {}, found.message
        if found.warnings:
            return {}, f"Prometheus warns that data may be missing: {found.warnings[0]}"
        seen[side] = histograms.seen_in(found.samples, source.scale)
        if not seen[side]:
            return {}, f"Prometheus has no {source.label} of the {side} revision"
    return seen, ""


def _seen_to_json(seen: Seen) -> dict[str, dict[str, float]]:
    return {
        instance: {repr(bound): value for bound, value in counts.items()}
        for instance, counts in seen.items()
    }


def _seen(stored: Mapping[str, Mapping[str, float]]) -> dict[str, dict[float, float]]:
    return {
        instance: {float(bound): value for bound, value in counts.items()}
        for instance, counts in stored.items()
    }
