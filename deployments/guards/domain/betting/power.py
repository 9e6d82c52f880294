"""The smallest regression that the tests can find: before a rollout by its traffic, in it by what was seen.

"Nothing was detected" says something only beside what would have been. A failure rate `times` that of
stable is counted as found when the slow or the fast lane reaches its level with a probability of 90%,
by the mean and the variance of what a block gains, with its payoff: an approximation that a
benchmark holds against the tests themselves (`make bench NAME=sequential`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from deployments.guards.domain.betting import e_process, rates
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.lanes import Claim, IntervalTrial
from deployments.guards.domain.betting.rates import RateLimit
from deployments.guards.domain.betting.slots import SLOT_SECONDS

_NORMAL: Final = NormalDist()
_Z: Final = _NORMAL.inv_cdf(0.9)
_POINTS: Final = tuple(_NORMAL.inv_cdf((index + 0.5) / 40) for index in range(40))
# One rho of the mixture bets from the start with so much less than the whole capital.
_LOG_MIXTURE: Final = math.log(2 * len(e_process.WORSE))
_LOG_2: Final = math.log(2)
_MOST_TIMES: Final = 100.0
_LEAST_BLOCKS: Final = 2


@dataclass(frozen=True, slots=True)
class PowerTraffic:
    """The expected traffic: `requests` of both sides per second, of which the candidate gets `weight`, 0 to 1."""

    requests: float
    weight: float
    base_rate: float


@dataclass(frozen=True, slots=True)
class PowerSetting:
    """The setting of one test. `level` is what it may spend; a block takes `block_seconds`, or one reading."""

    limit: RateLimit
    level: float
    block_seconds: float
    payoff: Payoff = Payoff.CAPPED


@functools.lru_cache(maxsize=1024)
def smallest_regression(
    traffic: PowerTraffic, setting: PowerSetting, *, seconds: float
) -> float | None:
    """Return the smallest multiple of stable's rate that is detected within `seconds`. None if not even a hundred
    times is.
    """

    def is_found(times: float) -> bool:
        needed = seconds_to_find(traffic, setting, times=times)
        return needed is not None and needed <= seconds

    return _smallest(is_found)


def seconds_to_find(traffic: PowerTraffic, setting: PowerSetting, *, times: float) -> float | None:
    """Return the time in which a candidate that fails `times` as often is detected. None for never."""
    rate = min(1.0, times * traffic.base_rate)
    block = max(setting.block_seconds, SLOT_SECONDS)
    slow = _blocks_until(
        _claims_of_slow_lane(traffic, setting.limit, rate, block), setting.level, setting.payoff
    )
    fast = _blocks_until(
        _claims_of_fast_lane(traffic, setting.limit, rate), setting.level, Payoff.FULL
    )
    found = [
        count * length
        for count, length in ((slow, block), (fast, float(SLOT_SECONDS)))
        if count is not None
    ]
    return min(found, default=None)


def smallest_slowdown(
    *, ratio: float, block_count: int, spread: float, level: float
) -> float | None:
    """Return the smallest multiple of a mean that is detected. None while too few blocks are complete.

    `spread` is the standard deviation of the logarithm of a block's mean.
    """
    needed = math.log(2 / level) + _LOG_MIXTURE
    for percent in range(56, 101):
        part = percent / 100
        gains = [
            part * math.log(rho) - math.log1p((rho - 1) * e_process.SIGN_CHANCE)
            for rho in e_process.WORSE
        ]
        if block_count * max(gains) >= needed:
            return ratio * math.exp(_NORMAL.inv_cdf(min(part, 0.99)) * spread * math.sqrt(2))
    return None


def fewest_blocks(sign: IntervalTrial, level: float, payoff: Payoff) -> int:
    """Return how many blocks that all look like `sign` bring the slow lane to the level."""
    claim, count = Claim(), 0
    while claim.evidence * level < 1:
        claim, count = claim.bet_block(sign, payoff), count + 1
    return count


@dataclass(frozen=True, slots=True)
class _Claim:
    """The expectation of each block: hits (also their variance), other trials, and the chance."""

    hits: float
    others: float
    chance: float
    # A claim against a fixed rate counts requests, so that its trials are no chance.
    is_alone: bool = False

    def log_gain(self, rho: float) -> tuple[float, float]:
        """Return the mean and variance of log e in a block."""
        penalty = math.log1p((rho - 1) * self.chance)
        if self.is_alone:
            return self.hits * math.log(rho) - self.others * penalty, self.hits * math.log(rho) ** 2
        gain = math.log(rho) - penalty
        mean = self.hits * gain - self.others * penalty
        return mean, self.hits * gain**2 + self.others * penalty**2


# Each tuple of claims must be refuted together; any of the tuples is enough.
_Alternatives = list[tuple[_Claim, ...]]


def _claims_of_slow_lane(
    traffic: PowerTraffic, limit: RateLimit, rate: float, seconds: float
) -> _Alternatives:
    alternatives: _Alternatives = []
    if limit.max is not None:
        alternatives.append((_alone(traffic, rate, limit.max, seconds),))
    if limit.ratio is not None:
        ratio = _beside(traffic, rate, limit.ratio, seconds)
        floors = []
        if limit.floor is None:
            floors.append(_beside(traffic, rate, rates.FLOOR_RATIO, seconds))
        if limit.floor != 0:
            floors.append(_alone(traffic, rate, limit.floor or rates.FLOOR, seconds))
        alternatives += [(ratio, floor) for floor in floors] or [(ratio,)]
    return alternatives


def _claims_of_fast_lane(traffic: PowerTraffic, limit: RateLimit, rate: float) -> _Alternatives:
    seconds = float(SLOT_SECONDS)
    alternatives: _Alternatives = []
    if limit.max is not None:
        alternatives.append((_alone(traffic, rate, limit.gross_max, seconds),))
    if limit.ratio is not None:
        ratio = _beside(traffic, rate, limit.gross_ratio, seconds)
        alternatives.append((ratio, _alone(traffic, rate, limit.gross_floor, seconds)))
    return alternatives


def _alone(traffic: PowerTraffic, rate: float, most: float, seconds: float) -> _Claim:
    requests = traffic.requests * traffic.weight * seconds
    return _Claim(requests * rate, requests, most, is_alone=True)


def _beside(traffic: PowerTraffic, rate: float, ratio: float, seconds: float) -> _Claim:
    mine = traffic.requests * traffic.weight * seconds
    base = traffic.requests * (1 - traffic.weight) * seconds
    chance = ratio * mine / (ratio * mine + base) if mine else 0.0
    return _Claim(mine * rate, base * traffic.base_rate, chance)


def _blocks_until(alternatives: _Alternatives, level: float, payoff: Payoff) -> int | None:
    """Return the fewest blocks after which all claims of an alternative reach the level."""
    counts = []
    for claims in alternatives:
        each = [_blocks_of_claim(claim, level, payoff) for claim in claims]
        known = [count for count in each if count is not None]
        if len(known) == len(each):
            counts.append(max(known))
    return min(counts, default=None)


@functools.lru_cache(maxsize=64)
def _blocks_of_claim(claim: _Claim, level: float, payoff: Payoff) -> int | None:
    # Half of the level for the lane, half of that for one of two floors.
    needed = math.log(4 / level) + _LOG_MIXTURE
    gains = [_after_payoff(*claim.log_gain(rho), payoff) for rho in e_process.WORSE]
    counts = [_count(needed, mean, variance) for mean, variance in gains if mean > 0]
    return min(counts, default=None)


def _count(needed: float, mean: float, variance: float) -> int:
    """Return the number of blocks n after which n mean - z sqrt(n variance) is as much as needed."""
    spread = _Z * math.sqrt(variance)
    root = (spread + math.sqrt(spread**2 + 4 * mean * needed)) / (2 * mean)
    return max(_LEAST_BLOCKS, math.ceil(root**2))


def _after_payoff(mean: float, variance: float, payoff: Payoff) -> tuple[float, float]:
    """Return the mean and variance of the logarithm of the payoff, for a normal log e."""
    if payoff is Payoff.FULL or mean <= 0:
        # Each payoff is concave in log e and gains nothing at e = 1, so what gains nothing with e gains nothing with it.
        return mean, variance
    deviation = math.sqrt(variance)
    if payoff is Payoff.CAPPED:
        # Without exp and log, because a form evaluates it a hundred thousand times.
        gains = [min(_LOG_2, mean + deviation * z) for z in _POINTS]
    else:
        logs = [max(-300.0, min(300.0, mean + deviation * z)) for z in _POINTS]
        gains = [math.log(payoff.compute(math.exp(log_e))) for log_e in logs]
    center = sum(gains) / len(gains)
    return center, sum((gain - center) ** 2 for gain in gains) / len(gains)


def _smallest(is_found: Callable[[float], bool]) -> float | None:
    """Return the smallest multiple that is detected, to two digits; a larger one is detected sooner."""
    low, high = 1.0, _MOST_TIMES
    if not is_found(high):
        return None
    while high / low > 1.03:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high
