"""KEDA's cron trigger that keeps replicas during office hours.

KEDA reads each time as the cron parser robfig/cron does: weekdays are 0 to 6, and a range ends no earlier
than it begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from deployments.spec.domain.scaling import OfficeHours

_WEEK: Final = 7
_DAY_MINUTES: Final = 24 * 60


def trigger(hours: OfficeHours) -> dict[str, Any]:
    """Return the trigger for office hours. Hours that go past midnight end on the day after each of their days."""
    days = _weekdays(hours.days)
    last = {(day + 1) % _WEEK for day in days} if hours.end < hours.start else days
    return {
        "type": "cron",
        "name": "office-hours",
        "metadata": {
            "timezone": hours.timezone,
            "start": _cron_time(hours.start, days),
            "end": _cron_time(hours.end, last),
            "desiredReplicas": str(hours.replicas),
        },
    }


def hours_per_week(hours: OfficeHours) -> Decimal:
    """Return the hours in a week without a change to summer time, rounded to the hundredth."""
    minutes = (_minutes(hours.end) - _minutes(hours.start)) % _DAY_MINUTES
    return (Decimal(minutes * len(_weekdays(hours.days))) / 60).quantize(Decimal("0.01"))


def _weekdays(text: str) -> set[int]:
    """Parse days of the week. 0 is Sunday, and so is 7; a range may go past Saturday."""
    if text == "*":
        return set(range(_WEEK))
    days: set[int] = set()
    for part in text.split(","):
        begin, _, end = part.partition("-")
        first, last = int(begin), int(end or begin)
        days |= {day % _WEEK for day in range(first, last + (_WEEK if last < first else 0) + 1)}
    return days


def _minutes(clock: str) -> int:
    hour, _, minute = clock.partition(":")
    return int(hour) * 60 + int(minute)


def _cron_time(clock: str, days: Iterable[int]) -> str:
    hour, _, minute = clock.partition(":")
    return f"{int(minute)} {int(hour)} * * {_cron_days(sorted(days))}"


def _cron_days(days: list[int]) -> str:
    if len(days) == _WEEK:
        return "*"
    if len(days) > 1 and days[-1] - days[0] == len(days) - 1:
        return f"{days[0]}-{days[-1]}"
    return ",".join(str(day) for day in days)
