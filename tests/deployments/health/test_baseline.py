"""The rule of the 7-day baseline on whole weeks of simulated services."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from deployments.health.domain import baseline
from deployments.health.domain.baseline import CENTRE, BaselineMetric, HourlyTraffic, Streak

_SLOT = 900
Rate = Callable[[float], float]


def steady(_: float) -> float:
    return 5


def daily(hour: float) -> float:
    return 5 * (1 + 0.9 * math.sin(2 * math.pi * hour / 24))


def weekly(hour: float) -> float:
    return daily(hour) * (0.25 if hour // 24 % 7 >= 5 else 1)


def quiet(_: float) -> float:
    return 20 / 3600


def slots(rate: Rate, weeks: int, seed: int) -> list[HourlyTraffic]:
    """Quarters of hours: Poisson counts, 1% failing, 20 ms with a scatter."""
    dice = random.Random(seed)
    made = []
    for slot in range(weeks * 7 * 96):
        mean = rate(slot / 4) * _SLOT
        count = max(0, round(dice.gauss(mean, math.sqrt(mean))))
        failed = sum(dice.random() < 0.01 for _ in range(min(count, 400)))
        failed = round(failed * max(1, count / 400))
        spent = round((count - failed) * 20_000 * dice.gauss(1, 0.02))
        made.append(HourlyTraffic(count, failed, spent, spent // 2000, 4 * 900_000, _SLOT))
    return made


def merged(part: list[HourlyTraffic]) -> HourlyTraffic:
    return HourlyTraffic(
        sum(t.requests for t in part),
        sum(t.failures for t in part),
        sum(t.duration_us for t in part),
        sum(t.busy_ms for t in part),
        sum(t.observed_ms for t in part),
        sum(t.seconds for t in part),
    )


def alarms(made: list[HourlyTraffic], metric: BaselineMetric, first: int) -> list[int]:
    """The slots after which the baseline was found to be left, checked each quarter of an hour from `first`."""
    hours = [merged(made[at : at + 4]) for at in range(0, len(made), 4)]
    streak, found = Streak(), []
    for slot in range(first, len(made) + 1):
        start = (slot - 2) // 4 - 24 * baseline.DAYS - CENTRE
        complete = slot // 4
        history = [
            hours[index] if 0 <= index < complete else None
            for index in range(start, start + 24 * baseline.DAYS)
        ]
        compared = baseline.compare(metric, merged(made[slot - 4 : slot]), history)
        if compared is None:
            continue
        after = streak.after(compared.side)
        if after.side and after.side != streak.side:
            found.append(slot)
        streak = after
    return found


@pytest.mark.parametrize("rate", [steady, daily, weekly, quiet])
@pytest.mark.parametrize("metric", list(BaselineMetric))
def test_three_weeks_of_a_service_that_does_not_change_raise_no_alarm(
    rate: Rate, metric: BaselineMetric
) -> None:
    assert alarms(slots(rate, 5, seed=3), metric, 15 * 96) == []


@pytest.mark.parametrize(("rate", "minutes"), [(steady, 90), (daily, 360), (weekly, 360)])
def test_twice_the_requests_are_found(rate: Rate, minutes: int) -> None:
    at = 15 * 96 + 40
    made = slots(lambda hour: rate(hour) * (2 if hour >= at / 4 else 1), 3, seed=5)

    found = alarms(made, BaselineMetric.REQUESTS, 15 * 96)

    assert 0 < (found[0] - at) * 15 <= minutes


def test_a_level_that_stays_is_part_of_the_baseline_a_day_later() -> None:
    at = 15 * 96 + 40
    made = slots(lambda hour: 10 if hour >= at / 4 else 5, 3, seed=5)

    assert len(alarms(made, BaselineMetric.REQUESTS, 15 * 96)) == 1


def test_a_streak_needs_three_checks_on_one_side() -> None:
    streak = Streak()
    for side in (1, 1, -1, 1, 1):
        streak = streak.after(side)
    assert streak.side == 0
    assert streak.after(1).side == 1
    assert streak.after(1).after(0).after(0).side == 1
    assert streak.after(1).after(0).after(0).after(0).side == 0
