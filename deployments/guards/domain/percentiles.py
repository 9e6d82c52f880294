"""Guards of a percentile of latency, tested on the counts of a histogram.

    {"metric": "latency_p95", "max": 50, "max_ratio": 1.25, "ignore_below": 2}

"The 95th percentile is at most 50 ms" says that at most 5% of the requests take longer. Each
request is a trial that did or did not, so the bets of `sequential_tests` on one rate apply, and are
valid at any time. A histogram knows only its bounds: a limit between two is tested at the next one
above, and the evidence says so. That is never stricter than the plan.

Beside stable there is no bound to begin with. For every bound t of the histogram two tests run:
that less than 5% of stable's requests take longer than t, and that more than 5% of the
candidate's take longer than the limit that follows from t. If the candidate is as allowed, then of
each t one of the two claims is false, so both are believed with a chance of at most alpha / K; with
K bounds the candidate is called worse with a chance of at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, field_validator, model_validator

from deployments.guards.domain import histograms, sequential_tests
from deployments.guards.domain.histograms import Counts
from deployments.guards.domain.limits import MAX_RATIO
from deployments.guards.domain.sequential_tests import Bets

QUANTILES: Final[Mapping[str, float]] = {"latency_p95": 0.95, "latency_p99": 0.99}
LABELS: Final[Mapping[str, str]] = {"latency_p95": "Latency p95", "latency_p99": "Latency p99"}
SOURCE: Final = "histograms in the cluster's Prometheus"
IGNORE_BELOW_MS: Final = 2.0
_MOST_MS: Final = 3_600_000


class PercentileGuard(BaseModel):
    """`max` in milliseconds. A ratio does not count what is above stable by `ignore_below` at most."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metric: Literal["latency_p95", "latency_p99"]
    max: float | None = Field(strict=True, default=None, gt=0, le=_MOST_MS)
    max_ratio: float | None = Field(strict=True, default=None, ge=1, le=MAX_RATIO)
    # Left out or null: the default.
    ignore_below: StrictFloat = Field(default=IGNORE_BELOW_MS, ge=0, le=_MOST_MS / 2)

    @field_validator("ignore_below", mode="before")
    @classmethod
    def _default_floor(cls, value: object) -> object:
        return IGNORE_BELOW_MS if value is None else value

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.tests == 0:
            raise ValueError(f"The guard {self.metric} needs a max, a max_ratio or both.")
        return self

    @property
    def tests(self) -> int:
        return (self.max is not None) + (self.max_ratio is not None)

    @property
    def label(self) -> str:
        return LABELS[self.metric]

    @property
    def share(self) -> float:
        """The part of the requests that may take longer."""
        return 1 - QUANTILES[self.metric]

    def allowed_beside(self, stable_ms: float) -> float:
        return max((self.max_ratio or 1.0) * stable_ms, stable_ms + self.ignore_below)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()


@dataclass(frozen=True, slots=True)
class PercentileTests:
    """What a step has observed of both sides, and a test for each percentile, side and bound."""

    stable: Counts = field(default_factory=dict)
    candidate: Counts = field(default_factory=dict)
    bets: Mapping[str, Bets] = field(default_factory=dict)

    def of(self, side: str, metric: str, bound: float) -> Bets:
        return self.bets.get(_key(side, metric, bound), Bets())

    @property
    def bounds(self) -> list[float]:
        """Bounds that both sides have."""
        both = self.stable.keys() & self.candidate.keys()
        return sorted(bound for bound in both if math.isfinite(bound))

    def bound_for(self, limit: float) -> float | None:
        """The first bound that is not below the limit."""
        known = histograms.finite_bounds(self.candidate)
        return next((bound for bound in known if bound >= limit), None)

    def bound_within(self, limit: float) -> float | None:
        known = histograms.finite_bounds(self.candidate)
        return next((bound for bound in reversed(known) if bound <= limit), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "stable": _counts_to_json(self.stable),
            "candidate": _counts_to_json(self.candidate),
            "bets": {name: bets.to_json() for name, bets in self.bets.items()},
        }


def tests_from_json(stored: Mapping[str, Any]) -> PercentileTests:
    return PercentileTests(
        stable=_counts(stored.get("stable", {})),
        candidate=_counts(stored.get("candidate", {})),
        bets={
            name: sequential_tests.bets_from_json(bets)
            for name, bets in stored.get("bets", {}).items()
        },
    )


def advance(
    tests: PercentileTests,
    *,
    stable: Counts,
    candidate: Counts,
    guards: tuple[PercentileGuard, ...],
) -> PercentileTests:
    """Update the tests with the increase of both histograms since the last reading."""
    bets = dict(tests.bets)
    for guard in guards:
        for side, counts in (("stable", stable), ("candidate", candidate)):
            for bound in histograms.finite_bounds(counts):
                name = _key(side, guard.metric, bound)
                bets[name] = bets.get(name, Bets()).bet(
                    hits=histograms.above(counts, bound),
                    trials=histograms.total(counts),
                    chance=guard.share,
                )
    return PercentileTests(
        stable=histograms.add(tests.stable, stable),
        candidate=histograms.add(tests.candidate, candidate),
        bets=bets,
    )


def p_of_max(guard: PercentileGuard, tests: PercentileTests) -> float:
    """Always-valid, of "the candidate's percentile is at most `max`"."""
    bound = None if guard.max is None else tests.bound_for(guard.max)
    return 1.0 if bound is None else _p_over(tests, "candidate", guard, bound)


def p_of_ratio(guard: PercentileGuard, tests: PercentileTests) -> float:
    """Always-valid, of "the candidate's percentile is within the limit relative to stable's"."""
    if guard.max_ratio is None:
        return 1.0
    p_values = [
        max(_p_under(tests, "stable", guard, base), _p_over(tests, "candidate", guard, limit))
        for base, limit in _pairs(guard, tests)
    ]
    # Without a bound that both sides have nothing was tested, so nothing is refuted.
    return min(1.0, len(tests.bounds) * min(p_values)) if p_values else 1.0


def is_shown_within(guard: PercentileGuard, tests: PercentileTests, alpha: float) -> bool:
    """Whether all limits are proven to be met now."""
    return _is_max_shown(guard, tests, alpha) and _is_ratio_shown(guard, tests, alpha)


def _is_max_shown(guard: PercentileGuard, tests: PercentileTests, alpha: float) -> bool:
    if guard.max is None:
        return True
    bound = tests.bound_for(guard.max)
    if bound is None:
        return False
    return tests.of("candidate", guard.metric, bound).within.value >= 1 / alpha


def _is_ratio_shown(guard: PercentileGuard, tests: PercentileTests, alpha: float) -> bool:
    """The inverse of p_of_ratio: stable is above some bound, the candidate below the limit that
    follows from it."""
    if guard.max_ratio is None:
        return True
    needed = len(tests.bounds) / alpha
    for base in tests.bounds:
        limit = tests.bound_within(guard.allowed_beside(base))
        if limit is None or tests.of("stable", guard.metric, base).worse.value < needed:
            continue
        if tests.of("candidate", guard.metric, limit).within.value >= needed:
            return True
    return False


def _pairs(guard: PercentileGuard, tests: PercentileTests) -> Iterator[tuple[float, float]]:
    for base in tests.bounds:
        limit = tests.bound_for(guard.allowed_beside(base))
        if limit is not None:
            yield base, limit


def _p_over(tests: PercentileTests, side: str, guard: PercentileGuard, bound: float) -> float:
    return min(1.0, 1 / tests.of(side, guard.metric, bound).worse.peak)


def _p_under(tests: PercentileTests, side: str, guard: PercentileGuard, bound: float) -> float:
    return min(1.0, 1 / tests.of(side, guard.metric, bound).within.peak)


def _key(side: str, metric: str, bound: float) -> str:
    return f"{side} {metric} {float(bound)!r}"


def _counts_to_json(counts: Counts) -> dict[str, int]:
    return {repr(float(bound)): count for bound, count in counts.items()}


def _counts(stored: Mapping[str, int]) -> dict[float, int]:
    return {float(bound): count for bound, count in stored.items()}
