"""The sequential tests of one step: their state, and how one more interval updates it.

Pure: `advance` takes what was stored and the increases since, and returns what to store. Each step
begins anew, with its share of alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deployments.guards.domain import counters, e_process
from deployments.guards.domain.counters import NO_FACTS, NO_SUMS, Facts, Sums
from deployments.guards.domain.e_process import Wealth
from deployments.guards.domain.limits import GuardLimit, Metric


@dataclass(frozen=True, slots=True)
class Bets:
    """One test of one limit, in both directions; `hits` of its `trials` were worse than allowed."""

    worse: Wealth = field(default_factory=e_process.suspicion)
    within: Wealth = field(default_factory=e_process.confidence)
    hits: int = 0
    trials: int = 0

    def bet(self, *, hits: int, trials: int, chance: float) -> Bets:
        return Bets(
            worse=self.worse.bet(hits=hits, trials=trials, chance=chance),
            within=self.within.bet(hits=hits, trials=trials, chance=chance),
            hits=self.hits + hits,
            trials=self.trials + trials,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "worse": self.worse.to_json(),
            "within": self.within.to_json(),
            "hits": self.hits,
            "trials": self.trials,
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One interval of both sides, or all that a step observed of them."""

    stable: Sums = NO_SUMS
    candidate: Sums = NO_SUMS

    def __add__(self, other: Side) -> Side:
        return Side(self.stable + other.stable, self.candidate + other.candidate)

    def to_json(self) -> dict[str, Any]:
        return {"stable": self.stable.to_json(), "candidate": self.candidate.to_json()}


@dataclass(frozen=True, slots=True)
class StepTests:
    """`waiting` is the interval that has too few requests to compare means yet, of both sides;
    `alone` the same of the candidate only, for absolute limits. `split` leaves out what may
    have been sent with the weight before.
    """

    total: Side = field(default_factory=Side)
    split: Side = field(default_factory=Side)
    waiting: Side = field(default_factory=Side)
    alone: Sums = NO_SUMS
    bets: Mapping[str, Bets] = field(default_factory=dict)

    def of(self, name: str) -> Bets:
        return self.bets.get(name, Bets())

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total.to_json(),
            "split": self.split.to_json(),
            "waiting": self.waiting.to_json(),
            "alone": self.alone.to_json(),
            "bets": {name: bets.to_json() for name, bets in self.bets.items()},
        }


def max_test(metric: Metric) -> str:
    return f"{metric}.max"


def ratio_test(metric: Metric) -> str:
    return f"{metric}.ratio"


def floor_test(metric: Metric) -> str:
    """Whether the candidate is above what a relative limit ignores."""
    return f"{metric}.floor"


def from_json(stored: Mapping[str, Any]) -> StepTests:
    return StepTests(
        total=_side(stored.get("total", {})),
        split=_side(stored.get("split", {})),
        waiting=_side(stored.get("waiting", {})),
        alone=counters.from_json(stored.get("alone")),
        bets={name: bets_from_json(bets) for name, bets in stored.get("bets", {}).items()},
    )


def advance(
    tests: StepTests,
    interval: Side,
    *,
    limits: tuple[GuardLimit, ...],
    stable: Facts = NO_FACTS,
    candidate: Facts = NO_FACTS,
    is_within_step: bool = True,
) -> StepTests:
    """`is_within_step` False: the interval began before the step, so its split is not the step's.
    The tests use it all the same; they are valid whatever the traffic weight of each side.
    """
    bets = dict(tests.bets)
    for limit in limits:
        if limit.metric == Metric.ERROR_RATE:
            _bet_on_errors(bets, limit, interval)
    waiting, alone = tests.waiting + interval, tests.alone + interval.candidate
    if alone.timed >= e_process.SIGN_REQUESTS:
        for limit in _compared(limits):
            _bet_on_max(bets, limit, alone, candidate)
        alone = Sums()
    if min(waiting.stable.timed, waiting.candidate.timed) >= e_process.SIGN_REQUESTS:
        for limit in _compared(limits):
            _bet_on_ratio(bets, limit, waiting, stable, candidate)
        waiting = Side()
    return StepTests(
        total=tests.total + interval,
        split=tests.split + interval if is_within_step else tests.split,
        waiting=waiting,
        alone=alone,
        bets=bets,
    )


def _compared(limits: tuple[GuardLimit, ...]) -> list[GuardLimit]:
    """Means over intervals. Errors are counted, and memory is measured, not sampled."""
    direct = (Metric.ERROR_RATE, Metric.GPU_MEMORY)
    return [limit for limit in limits if limit.metric not in direct]


def _bet_on_errors(bets: dict[str, Bets], limit: GuardLimit, interval: Side) -> None:
    mine, others = interval.candidate, interval.stable

    def of_requests(name: str, most: float) -> None:
        bets[name] = bets.get(name, Bets()).bet(
            hits=mine.failure, trials=mine.requests, chance=most
        )

    if limit.max is not None:
        of_requests(max_test(limit.metric), limit.max)
    if limit.max_ratio is None:
        return
    if limit.ignore_below:
        of_requests(floor_test(limit.metric), limit.ignore_below)
    failures = mine.failure + others.failure
    if failures:
        chance = e_process.share_of_failures(
            ratio=limit.max_ratio, candidate=mine.requests, stable=others.requests
        )
        name = ratio_test(limit.metric)
        bets[name] = bets.get(name, Bets()).bet(hits=mine.failure, trials=failures, chance=chance)


def _bet_on_max(bets: dict[str, Bets], limit: GuardLimit, alone: Sums, facts: Facts) -> None:
    value = counters.value_of(limit.metric, alone, facts)
    if limit.max is not None and value is not None:
        _bet_on_sign(bets, max_test(limit.metric), is_worse=value > limit.max)


def _bet_on_ratio(
    bets: dict[str, Bets], limit: GuardLimit, interval: Side, stable: Facts, candidate: Facts
) -> None:
    mine = counters.value_of(limit.metric, interval.candidate, candidate)
    base = counters.value_of(limit.metric, interval.stable, stable)
    if mine is not None and base is not None and (most := most_of(limit, base)) is not None:
        _bet_on_sign(bets, ratio_test(limit.metric), is_worse=mine > most)


def _bet_on_sign(bets: dict[str, Bets], name: str, *, is_worse: bool) -> None:
    bets[name] = bets.get(name, Bets()).bet(
        hits=int(is_worse), trials=1, chance=e_process.SIGN_CHANCE
    )


def most_of(limit: GuardLimit, stable: float) -> float | None:
    """The highest value that the relative limit allows for this value of stable.

    A rate may always be as high as `ignore_below`; a mean may always lie that much above stable's.
    """
    if limit.max_ratio is None:
        return None
    if limit.metric == Metric.ERROR_RATE:
        return max(limit.max_ratio * stable, limit.ignore_below)
    return max(limit.max_ratio * stable, stable + limit.ignore_below)


def _side(stored: Mapping[str, Any]) -> Side:
    return Side(
        counters.from_json(stored.get("stable")),
        counters.from_json(stored.get("candidate")),
    )


def bets_from_json(stored: Mapping[str, Any]) -> Bets:
    return Bets(
        worse=e_process.suspicion(stored["worse"]),
        within=e_process.confidence(stored["within"]),
        hits=stored["hits"],
        trials=stored["trials"],
    )
