"""Always-valid tests: they may be evaluated at every interval and stopped at any time, and the
chance of ever being wrong stays below alpha.

A `Wealth` is an e-process: a bettor's capital that starts at 1 and, while the null hypothesis is
true, is not expected to grow. By Ville's inequality it reaches 1/alpha with probability at most
alpha, however often it is evaluated; 1 / its highest value is an always-valid p-value (Johari et
al., "Always valid inference", Operations Research 2022; Ramdas, Grünwald, Vovk, Shafer,
"Game-theoretic statistics and safe anytime-valid inference", Statistical Science 2023).

All tests here are one bet: of `trials`, `hits` fell on the suspicious side, where the null says
that each does so with probability at most `chance`. Against odds that are `rho` times higher the
capital is multiplied by rho^hits / (1 + (rho - 1) chance)^trials. The rhos are mixed with equal
shares, which is the mixture sequential probability ratio test of Robbins with a discrete prior.

- One rate against a limit: trials are requests, hits failures, chance the limit. The likelihood
  ratio is monotone, so the bound holds for every rate up to the limit. Assumes that requests fail
  independently, given what came before.
- Two rates, candidate at most `ratio` times stable: trials are the failures of both sides in one
  interval, hits the candidate's, chance = ratio n_c / (ratio n_c + n_s). With X ~ Bin(n_c, a),
  Y ~ Bin(n_s, b), a <= ratio b and c = 1 + (rho - 1) chance, log E[rho^X / c^(X+Y)]
  <= n_c a (rho/c - 1) + n_s b (1/c - 1) <= 0, so the bound is exact and not asymptotic, and the
  rates may change from interval to interval as long as a <= ratio b holds in each. Assumes that
  the gateway chooses the side without regard to what would fail.
- Two means of intervals: trials are intervals in which both sides had enough requests, hits those
  in which the candidate was worse than allowed, chance SIGN_CHANCE. It needs no variance, which
  Triton's counters do not give, and no shape. Assumes that in an interval, given the past, an
  allowed candidate appears worse with at most that probability: 1/2 for medians, and a little more
  because the mean of few skewed values lies below its expectation more often than above.

A `Payoff` limits what one interval may gain. Requests that fail together, because a pod pauses or a
node is busy, are not independent given the past, and one burst could win a test at FULL. min(2, e)
is at most e, so it is an e-value wherever e is; where both sides are exchangeable, a burst of the
candidate gains at most log 2 and one of stable loses nearly all. 2e / (1 + e) is concave, so an
e-value wherever e is (Jensen), and also for any noise whose log e is symmetric about a value of at
most 0.

Worse may begin late. The capital is therefore spread over all intervals as starting points, 1/2 on
the first, 1/(k(k+1)) on the k-th (Shin, Ramdas, Rinaldo, "E-detectors", NEJSDS 2024); a mixture of
e-processes is one, so nothing is lost but a little speed. See also Howard, Ramdas, McAuliffe,
Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics
2021, and Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B
2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

# The mean of 20 exponential times lies below that of many with a probability of 0.53.
SIGN_CHANCE: Final = 0.55
# Requests that each side must have in an interval for its means to be compared. Few skewed times of the candidate
# have a low mean more often than a high one, so that it needs fewer.
SIGN_REQUESTS: Final = 20
SIGN_REQUESTS_OF_CANDIDATE: Final = 10

WORSE: Final = (1.12, 1.3, 1.7, 2.2, 3.0, 4.5, 7.0, 12.0, 30.0)
WITHIN: Final = tuple(1 / rho for rho in WORSE)


class Payoff(Enum):
    """The factor by which an interval with likelihood ratio e multiplies the capital."""

    FULL = "e"
    CAPPED = "min(2, e)"
    SYMMETRIC = "2e / (1 + e)"

    def compute(self, e: float) -> float:
        if self is Payoff.FULL:
            return e
        return min(2.0, e) if self is Payoff.CAPPED else 2 * e / (1 + e)


# Beyond any threshold; prevents overflow in a rollout that is never ended.
_MOST: Final = 1e100


@dataclass(frozen=True, slots=True)
class Wealth:
    """An e-process. `capitals` is the capital of each rho, `intervals` how many intervals had trials, `peak` the
    highest total capital so far.

    Capital reserved for later starting points counts unchanged.
    """

    rhos: tuple[float, ...]
    capitals: tuple[float, ...]
    intervals: int = 0
    peak: float = 1.0
    has_restarts: bool = True

    @property
    def value(self) -> float:
        reserved = 1 / (self.intervals + 1) if self.has_restarts else 0.0
        return sum(self.capitals) / len(self.rhos) + reserved

    def bet(self, *, hits: int, trials: int, chance: float, payoff: Payoff = Payoff.FULL) -> Wealth:
        """Return the capital after an interval. Without trials nothing changes."""
        if trials <= 0:
            return self
        intervals = self.intervals + 1
        # Every interval releases its part of the reserved capital: 1/k - 1/(k+1).
        fresh = 1 / (intervals * (intervals + 1)) if self.has_restarts else 0.0
        capitals = tuple(
            min(_MOST, (capital + fresh) * payoff.compute(_factor(rho, hits, trials, chance)))
            for rho, capital in zip(self.rhos, self.capitals, strict=True)
        )
        after = Wealth(self.rhos, capitals, intervals, self.peak, self.has_restarts)
        return Wealth(
            self.rhos, capitals, intervals, max(self.peak, after.value), self.has_restarts
        )

    def to_json(self) -> dict[str, Any]:
        return {"capitals": list(self.capitals), "intervals": self.intervals, "peak": self.peak}


def suspicion(stored: Mapping[str, Any] | None = None) -> Wealth:
    """Start the capital against "no worse than allowed": it grows when the candidate is worse, from whenever on."""
    return _wealth(WORSE, stored, has_restarts=True)


def confidence(stored: Mapping[str, Any] | None = None) -> Wealth:
    """Start the capital against "at least as bad as the limit": it grows when the candidate stays within."""
    return _wealth(WITHIN, stored, has_restarts=False)


def _wealth(
    rhos: tuple[float, ...], stored: Mapping[str, Any] | None, *, has_restarts: bool
) -> Wealth:
    if stored:
        return Wealth(
            rhos, tuple(stored["capitals"]), stored["intervals"], stored["peak"], has_restarts
        )
    start = 0.0 if has_restarts else 1.0
    return Wealth(rhos, (start,) * len(rhos), has_restarts=has_restarts)


def _factor(rho: float, hits: int, trials: int, chance: float) -> float:
    power = hits * math.log(rho) - trials * math.log1p((rho - 1) * chance)
    return math.exp(min(power, 230.0))


def share_of_failures(*, ratio: float, candidate: int, stable: int) -> float:
    """Return the chance that a failure is the candidate's if it fails `ratio` times as often as stable."""
    return ratio * candidate / (ratio * candidate + stable)


def upper_bound(*, failures: int, requests: int, alpha: float) -> float:
    """Return the anytime-valid upper confidence bound of a rate, which is exceeded with a probability of at most
    alpha.
    """
    if requests == 0:
        return 1.0
    low, high = failures / requests, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        wealth = sum(_factor(rho, failures, requests, middle) for rho in WITHIN) / len(WITHIN)
        low, high = (low, middle) if wealth >= 1 / alpha else (middle, high)
    return high


def share_band(*, share: float, n: int, alpha: float) -> tuple[float, float]:
    """Return the range in which an observed share of `n` may lie at any time if `share` is right.

    It contains the counts that a beta mixture around `share` does not refute (Robbins 1970). Widest at the start: 0
    to 1.
    """
    if n == 0 or not 0 < share < 1:
        return (0.0, 1.0) if n == 0 else (share, share)
    expected = round(share * n)
    low, high = 0, expected
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(middle, n, share, alpha) else (middle + 1, high)
    lowest = low
    low, high = expected, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fits(middle, n, share, alpha) else (low, middle - 1)
    return lowest / n, low / n


# As many requests as the mixture's prior is worth; narrowest around some thousand.
_PRIOR: Final = 200


def _fits(hits: int, n: int, share: float, alpha: float) -> bool:
    a, b = _PRIOR * share, _PRIOR * (1 - share)
    log_mixture = _log_beta(a + hits, b + n - hits) - _log_beta(a, b)
    log_null = hits * math.log(share) + (n - hits) * math.log(1 - share)
    return log_mixture - log_null < math.log(1 / alpha)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
