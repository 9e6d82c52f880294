"""Whether the last hour of a deployment is like the same hour of the seven days before.

The rule, for each metric (ADR 50):

1. The value of the last 60 minutes is compared with those of the seven days before in the same hour of the day and the
   hours beside it. Its distance is |log ratio| to the *nearest* of them, so a Saturday may be like the last Saturday
   and need not be like Friday, and a day with an incident widens nothing but its own surroundings.
2. It is far away when the distance exceeds log 1.5 and twice the noise of this service. Noise: for each of
   the seven days, the largest distance of one of its hours from the nearest hour of the other six days; of these seven
   values the median, so that three unusual days count for nothing.
3. Counts must not explain it: the difference of requests or failures exceeds four standard errors (variance-stabilised
   Poisson counts, Anscombe 1948).
4. The baseline is left once three checks in a row, 15 minutes apart, are far away on the same side; it is regained after three
   that are not. A level that stays is part of the baseline a day later.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

DAYS: Final = 7
# Days that must be known at this hour before anything is judged; the oldest hour must be six days old.
LEAST_DAYS: Final = 3
CHECKS_TO_CHANGE: Final = 3
_RATIO: Final = 1.5
_NOISE_FACTOR: Final = 2.0
_STANDARD_ERRORS: Final = 4.0
# The mean of fewer is mostly chance.
_LEAST_REQUESTS: Final = 50
_LEAST_SECONDS: Final = 1800
_HOURS: Final = 24 * DAYS


class BaselineMetric(StrEnum):
    ERRORS = "error_ratio"
    LATENCY = "mean_latency"
    REQUESTS = "requests"
    GPU = "gpu_use"


@dataclass(frozen=True, slots=True)
class HourlyTraffic:
    """The traffic of a deployment in an hour. `seconds` covers the minutes in which a pod was read;
    `observed_ms` is pod time, of which `busy_ms` were spent executing; `duration_us` is the sum over
    successful requests.
    """

    requests: int
    failures: int
    duration_us: int
    busy_ms: int
    observed_ms: int
    seconds: int


# Hours, of which index 24·d + CENTRE is the same hour of the day as now, 7 - d days ago; None is not known.
History = Sequence[HourlyTraffic | None]
CENTRE: Final = 12


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """A metric that is compared with a baseline. Values below `floor`, which is in the unit of `value`, count
    as `floor`.
    """

    label: str
    floor: float
    value: Callable[[HourlyTraffic], float | None]
    is_higher_only: bool = False


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """A value next to its baseline. `low` and `high` are the range of the baseline at this hour. `side` is 1
    above, -1 below and 0 within.
    """

    value: float
    low: float
    high: float
    side: int


def _error_ratio(traffic: HourlyTraffic) -> float | None:
    is_enough = traffic.requests >= _LEAST_REQUESTS
    return traffic.failures / traffic.requests if is_enough else None


def _mean_latency(traffic: HourlyTraffic) -> float | None:
    success = traffic.requests - traffic.failures
    return traffic.duration_us / success / 1000 if success >= _LEAST_REQUESTS else None


def _requests(traffic: HourlyTraffic) -> float | None:
    is_known = traffic.seconds >= _LEAST_SECONDS
    return traffic.requests / traffic.seconds if is_known else None


def _gpu_use(traffic: HourlyTraffic) -> float | None:
    is_known = traffic.seconds >= _LEAST_SECONDS and traffic.observed_ms > 0
    return traffic.busy_ms / traffic.observed_ms if is_known else None


KINDS: Final[Mapping[BaselineMetric, ComparedMetric]] = {
    BaselineMetric.ERRORS: ComparedMetric("Error ratio", 0.005, _error_ratio, is_higher_only=True),
    BaselineMetric.LATENCY: ComparedMetric("Mean latency", 2.0, _mean_latency, is_higher_only=True),
    BaselineMetric.REQUESTS: ComparedMetric("Requests", 0.01, _requests),
    BaselineMetric.GPU: ComparedMetric("GPU use", 0.05, _gpu_use),
}


def is_long_enough(history: History) -> bool:
    """Whether an hour of the first day of the seven is known."""
    return any(hour is not None for hour in history[:24])


def days_known(history: History) -> int:
    return sum(any(history[24 * day : 24 * day + 24]) for day in range(DAYS))


def history_start(at: datetime) -> datetime:
    """Return the beginning of the hour that index 0 of the history stands for, of a check at that time."""
    middle = at - timedelta(minutes=30)
    hour = middle.replace(minute=0, second=0, microsecond=0)
    return hour - timedelta(hours=_HOURS + CENTRE)


def compare(
    metric: BaselineMetric, now: HourlyTraffic, history: History
) -> BaselineComparison | None:
    """Compare the last 60 minutes, `now`, with the baseline. None if it cannot be judged."""
    kind = KINDS[metric]
    value = kind.value(now)
    if value is None:
        return None
    near = [_around(metric, history, day) for day in range(DAYS)]
    if sum(bool(of_day) for of_day in near) < LEAST_DAYS:
        return None
    known = [pair for of_day in near for pair in of_day]
    distance, nearest = min((_distance(kind, value, w), index) for index, w in known)
    low, high = min(w for _, w in known), max(w for _, w in known)
    reference = sorted(w for _, w in known)[len(known) // 2]
    side = 1 if value > reference else -1
    is_far = (
        distance > math.log(_RATIO)
        and not (kind.is_higher_only and side < 0)
        and _is_significant(metric, now, history[nearest])
        and distance > _NOISE_FACTOR * _noise(metric, history)
    )
    return BaselineComparison(value, low, high, side if is_far else 0)


def _around(metric: BaselineMetric, history: History, day: int) -> list[tuple[int, float]]:
    """Index and value of the known hours beside this hour of that day."""
    value = KINDS[metric].value
    first = 24 * day + CENTRE - 1
    known = []
    for index in range(first, first + 3):
        traffic = history[index]
        of_hour = None if traffic is None else value(traffic)
        if of_hour is not None:
            known.append((index, of_hour))
    return known


def _distance(kind: ComparedMetric, value: float, other: float) -> float:
    return abs(math.log(max(value, kind.floor) / max(other, kind.floor)))


def _noise(metric: BaselineMetric, history: History) -> float:
    """Return the largest distance of a usual day's hours from the nearest of the other days, as `compare` has
    it.
    """
    kind = KINDS[metric]
    values = [None if hour is None else kind.value(hour) for hour in history]
    logs = [None if value is None else math.log(max(value, kind.floor)) for value in values]
    largest: dict[int, float] = {}
    for index, own in enumerate(logs):
        if own is None:
            continue
        others = [
            abs(own - log)
            for start in range(index % 24 - 1, _HOURS, 24)
            if abs(start + 1 - index) >= 24
            for log in logs[max(0, start) : start + 3]
            if log is not None
        ]
        if others:
            day = index // 24
            largest[day] = max(largest.get(day, 0.0), min(others))
    return statistics.median(largest.values()) if largest else math.inf


def _is_significant(metric: BaselineMetric, now: HourlyTraffic, then: HourlyTraffic | None) -> bool:
    if then is None:
        return False
    if metric == BaselineMetric.REQUESTS:
        return _differ(now.requests, now.seconds, then.requests, then.seconds)
    if metric == BaselineMetric.ERRORS:
        # At least as many as the floor would have had.
        allowed = max(then.failures, round(KINDS[metric].floor * then.requests))
        return _differ(now.failures, now.requests, allowed, then.requests)
    return True


def _differ(count: int, span: float, other: int, other_span: float) -> bool:
    """Whether two Poisson counts have different rates: 2·√(x + 3/8) has variance 1 (Anscombe), scaled to the
    shorter span."""
    shorter = min(span, other_span)
    roots = [
        math.sqrt((x + 3 / 8) * shorter / s) if s else 0.0
        for x, s in ((count, span), (other, other_span))
    ]
    return 2 * abs(roots[0] - roots[1]) > _STANDARD_ERRORS * math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Streak:
    """The confirmed state of one metric: `side` is 1 above the baseline, -1 below and 0 within. `contrary`
    counts the consecutive checks on `contrary_side`.
    """

    side: int = 0
    contrary: int = 0
    contrary_side: int = 0

    def after(self, side: int) -> Streak:
        """Return the streak after one more check. Do not call it for a metric that is not known: nothing
        changes then.
        """
        if side == self.side:
            return Streak(self.side)
        contrary = self.contrary + 1 if side == self.contrary_side or not self.contrary else 1
        if contrary >= CHECKS_TO_CHANGE:
            return Streak(side)
        return Streak(self.side, contrary, side)
