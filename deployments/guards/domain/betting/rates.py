"""Tests of how often something happens to a request: it fails, is lost, or takes too long.

A `Pair` counts both sides in the same time. Allowed is a rate of at most `max`; and, relative to
stable, one of at most `ratio` times stable's or below the floor, so both must be refuted. Without
a floor of its own a limit has the default one: FLOOR or FLOOR_RATIO times stable's rate, whichever
is lower. That is refuted when either is, so each of the two may spend half.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from deployments.guards.domain.betting import e_process
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.lanes import Claim, Claims, IntervalTrial

FLOOR: Final = 0.005
FLOOR_RATIO: Final = 2.0
# What the fast lane takes for gross: so many times the ratio of the plan, and at least that rate.
GROSS: Final = 4.0
GROSS_RATE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Count:
    """The number of requests, and to how many of them the event happened."""

    requests: int = 0
    events: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.requests + other.requests, self.events + other.events)


@dataclass(frozen=True, slots=True)
class Pair:
    stable: Count = field(default_factory=Count)
    candidate: Count = field(default_factory=Count)

    def __add__(self, other: Pair) -> Pair:
        return Pair(self.stable + other.stable, self.candidate + other.candidate)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The limits of a rate. `floor` None means the default floor; 0 means none."""

    max: float | None = None
    ratio: float | None = None
    floor: float | None = None

    @property
    def gross_max(self) -> float:
        most = self.max or 0.0
        return max(GROSS_RATE, min(GROSS * most, (1 + most) / 2))

    @property
    def gross_ratio(self) -> float:
        return GROSS * (self.ratio or 1.0)

    @property
    def gross_floor(self) -> float:
        return max(GROSS_RATE, self.floor or 0.0)

    def compute_highest(self, stable: float) -> float:
        """Return the highest rate that the relative limit allows beside stable's."""
        floor = min(FLOOR, FLOOR_RATIO * stable) if self.floor is None else self.floor
        return max((self.ratio or 1.0) * stable, floor)


def bet_block(
    claims: dict[str, Claim], name: str, limit: RateLimit, pair: Pair, payoff: Payoff
) -> None:
    """Update the slow lane by a block."""
    for key, trial in _slow_trials(name, limit, pair):
        claims[key] = claims.get(key, Claim()).bet_block(trial, payoff)


def bet_reading(claims: dict[str, Claim], name: str, limit: RateLimit, pair: Pair) -> None:
    """Update the fast lane by a reading."""
    for key, trial in _fast_trials(name, limit, pair):
        claims[key] = claims.get(key, Claim()).bet_reading(trial)


def evidence(claims: Claims, name: str, limit: RateLimit) -> float:
    """Return the evidence against the limit from all its claims, to compare with 1 / the level of one test."""
    absolute = 0.0 if limit.max is None else claims.get(f"{name}.max", Claim()).evidence
    return max(absolute, _relative_evidence(claims, name, limit))


def is_within(claims: Claims, name: str, limit: RateLimit, *, alpha: float) -> bool:
    """Whether this step has shown that all limits are met."""

    def is_shown(key: str) -> bool:
        return claims.get(f"{name}.{key}", Claim()).within.value >= 1 / alpha

    if limit.max is not None and not is_shown("max"):
        return False
    if limit.ratio is None or is_shown("ratio"):
        return True
    # Where nothing happened, twice stable's rate can be shown by no number of requests.
    is_clean = claims.get(f"{name}.floor", Claim()).hits == 0
    return is_shown("floor") and (limit.floor is not None or is_clean or is_shown("twice"))


def _relative_evidence(claims: Claims, name: str, limit: RateLimit) -> float:
    if limit.ratio is None:
        return 0.0
    ratio, floor, twice = (
        claims.get(f"{name}.{key}", Claim()) for key in ("ratio", "floor", "twice")
    )
    slow_floor = math.inf
    if limit.floor is None:
        slow_floor = max(floor.slow.peak, twice.slow.peak) / 2
    elif limit.floor:
        slow_floor = floor.slow.peak
    slow = min(ratio.slow.peak, slow_floor)
    return max(slow, min(ratio.fast.peak, floor.fast.peak)) / 2


def _slow_trials(name: str, limit: RateLimit, pair: Pair) -> list[tuple[str, IntervalTrial]]:
    trials = []
    if limit.max is not None:
        trials.append((f"{name}.max", _alone(pair, limit.max)))
    if limit.ratio is not None:
        trials.append((f"{name}.ratio", _beside(pair, limit.ratio)))
        if limit.floor is None:
            trials.append((f"{name}.twice", _beside(pair, FLOOR_RATIO)))
        if limit.floor != 0:
            trials.append((f"{name}.floor", _alone(pair, limit.floor or FLOOR)))
    return trials


def _fast_trials(name: str, limit: RateLimit, pair: Pair) -> list[tuple[str, IntervalTrial]]:
    trials = []
    if limit.max is not None:
        trials.append((f"{name}.max", _alone(pair, limit.gross_max)))
    if limit.ratio is not None:
        trials.append((f"{name}.ratio", _beside(pair, limit.gross_ratio)))
        trials.append((f"{name}.floor", _alone(pair, limit.gross_floor)))
    return trials


def _alone(pair: Pair, most: float) -> IntervalTrial:
    return IntervalTrial(pair.candidate.events, pair.candidate.requests, most)


def _beside(pair: Pair, ratio: float) -> IntervalTrial:
    """Return the trial of the candidate's events among those of both sides. Without any there is no trial."""
    mine, base = pair.candidate, pair.stable
    if not mine.events + base.events:
        return IntervalTrial(0, 0, 0.0)
    chance = e_process.share_of_failures(ratio=ratio, candidate=mine.requests, stable=base.requests)
    return IntervalTrial(mine.events, mine.events + base.events, chance)
