"""Office hours as KEDA's cron trigger understands them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from deployments.manifests.domain.keda import office_hours
from deployments.spec.domain.scaling import OfficeHours

_HOUR = timedelta(hours=1)
# A Sunday.
_BEGIN = datetime(2026, 3, 1)


def _next(expression: str, now: datetime) -> datetime:
    """The first hour after now, as robfig/cron computes it; its weekdays are 0 to 6."""
    matched = re.fullmatch(r"0 (\d+) \* \* ([0-6](?:-[0-6])?(?:,[0-6])*|\*)", expression)
    assert matched, expression
    begin, _, end = matched[2].partition("-")
    assert not end or begin < end
    days = [int(day) for day in begin.split(",")] if matched[2] != "*" else list(range(7))
    days = list(range(int(begin), int(end) + 1)) if end else days
    at = now + _HOUR
    while (at.hour, at.isoweekday() % 7) not in {(int(matched[1]), day) for day in days}:
        at += _HOUR
    return at


def _is_active(metadata: dict[str, str], now: datetime) -> bool:
    """KEDA: the window is open when its end comes before its next start."""
    return _next(metadata["end"], now) < _next(metadata["start"], now)


@pytest.mark.parametrize(
    ("start", "end", "days", "opens_on"),
    [
        ("07:00", "20:00", "1-5", {1, 2, 3, 4, 5}),
        ("22:00", "06:00", "1-5", {1, 2, 3, 4, 5}),
        ("22:00", "00:00", "5", {5}),
        ("20:00", "04:00", "6,0", {6, 0}),
        ("07:00", "20:00", "1-7", {1, 2, 3, 4, 5, 6, 0}),
        ("07:00", "20:00", "5-7", {5, 6, 0}),
        ("07:00", "20:00", "5-1", {5, 6, 0, 1}),
        ("22:00", "06:00", "*", {0, 1, 2, 3, 4, 5, 6}),
        ("07:00", "20:00", "1,3", {1, 3}),
    ],
)
def test_replicas_are_kept_in_these_hours_and_in_no_others(
    start: str, end: str, days: str, opens_on: set[int]
) -> None:
    trigger = office_hours.trigger(OfficeHours(start=start, end=end, days=days, replicas=2))

    length = (int(end[:2]) - int(start[:2])) % 24
    expected = set()
    # Two weeks around the one that is compared, of whose first hours one window may be left.
    for day in range(-7, 14):
        opens = _BEGIN + timedelta(days=day, hours=int(start[:2]))
        if opens.isoweekday() % 7 in opens_on:
            expected |= {opens + hour * _HOUR for hour in range(length)}
    week = [_BEGIN + hour * _HOUR for hour in range(7 * 24)]
    active = {hour for hour in week if _is_active(trigger["metadata"], hour)}
    assert active == expected & set(week)
    assert trigger["metadata"]["desiredReplicas"] == "2"


def test_days_are_written_as_short_as_they_are_requested() -> None:
    metadata = office_hours.trigger(OfficeHours(start="07:30", end="18:00"))["metadata"]

    assert (metadata["start"], metadata["end"]) == ("30 7 * * 1-5", "0 18 * * 1-5")
