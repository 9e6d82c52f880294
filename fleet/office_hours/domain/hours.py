"""When a node pool is open: a window for each weekday, in a time zone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOURS_PER_WEEK: Final = 168
MOST_CLOSED: Final = 450
_DAY_MINUTES: Final = 24 * 60
_WEEK_MINUTES: Final = 7 * _DAY_MINUTES
# AWS needs minutes to start or end a node: shorter ones would never be reached.
_SHORTEST_MINUTES: Final = 30
_CLOCK: Final = re.compile(r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])|24:00")


@dataclass(frozen=True, slots=True)
class Window:
    """A window in minutes of the day. One that ends no later than it starts ends on the next day."""

    start: int
    end: int

    @property
    def minutes(self) -> int:
        return self.end - self.start + (_DAY_MINUTES if self.end <= self.start else 0)

    def __str__(self) -> str:
        return f"{clock_text(self.start)} to {clock_text(self.end)}"


@dataclass(frozen=True, slots=True)
class OpenInterval:
    """Open from `start` until before `end`, in UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class OfficeHours:
    """The office hours of a pool. `days` are Monday to Sunday; None: closed all day. `closed_size` is what stays
    outside of them: nodes of a node group or a static NodePool, GPUs of another NodePool's limit.
    """

    days: tuple[Window | None, ...]
    timezone: str = "UTC"
    closed_size: int = 0

    @property
    def minutes_per_week(self) -> int:
        return sum(end - start for start, end in _merged(self._week()))

    @property
    def hours_per_week(self) -> Decimal:
        return Decimal(self.minutes_per_week) / 60

    @property
    def hours_text(self) -> str:
        """The hours per week for people, such as "72.5", without trailing zeros."""
        return format_hours(self.hours_per_week)

    @property
    def open_fraction(self) -> Decimal:
        return Decimal(self.minutes_per_week) / _WEEK_MINUTES

    def is_open(self, at: datetime) -> bool:
        return any(item.start <= at < item.end for item in self._around(at))

    def next_edge(self, at: datetime) -> datetime:
        """Return the first time after `at` when it opens or closes."""
        for item in self._around(at):
            if at < item.start:
                return item.start
            if at < item.end:
                return item.end
        raise ValueError("it never changes")

    def _around(self, at: datetime) -> list[OpenInterval]:
        """Return the intervals around `at`, from two days before to 15 days after, merged where one ends as the
        next starts.
        """
        zone = ZoneInfo(self.timezone)
        today = at.astimezone(zone).date()
        merged: list[OpenInterval] = []
        for item in self._intervals(zone, today):
            if merged and item.start <= merged[-1].end:
                merged[-1] = OpenInterval(merged[-1].start, max(merged[-1].end, item.end))
            else:
                merged.append(item)
        return merged

    def _intervals(self, zone: ZoneInfo, today: date) -> Iterator[OpenInterval]:
        for offset in range(-2, 16):
            day = today + timedelta(days=offset)
            window = self.days[day.weekday()]
            if window is None:
                continue
            last = day + timedelta(days=1 if window.end <= window.start else 0)
            start, end = _instant(zone, day, window.start), _instant(zone, last, window.end)
            # A window inside the hour that a change to summer time leaves out.
            if start < end:
                yield OpenInterval(start, end)

    def _week(self) -> Iterator[tuple[int, int]]:
        """Yield the windows as minutes of the week. What goes past Sunday is on Monday too."""
        for day, window in enumerate(self.days):
            if window is None:
                continue
            start = day * _DAY_MINUTES + window.start
            end = start + window.minutes
            yield start, min(end, _WEEK_MINUTES)
            if end > _WEEK_MINUTES:
                yield 0, end - _WEEK_MINUTES

    def problems(self) -> dict[str, str]:
        """Return the problems by field. Empty if the office hours are valid."""
        problems = {}
        if not is_timezone(self.timezone):
            problems["timezone"] = "use an IANA name, for example Europe/Berlin"
        if not 0 <= self.closed_size <= MOST_CLOSED:
            problems["closed_size"] = f"use 0 to {MOST_CLOSED}"
        if problem := self._problem_with_days():
            problems["days"] = problem
        return problems

    def _problem_with_days(self) -> str:
        if any(window and window.minutes < _SHORTEST_MINUTES for window in self.days):
            return f"a window has at least {_SHORTEST_MINUTES} minutes"
        if not any(self.days):
            return "name hours for at least one day, or scale the pool instead"
        if self.minutes_per_week > _WEEK_MINUTES - _SHORTEST_MINUTES:
            return "it would never close: leave at least 30 minutes of the week out"
        return ""

    def to_json(self) -> dict[str, Any]:
        named = {
            name: [clock_text(window.start), clock_text(window.end)] if window else None
            for name, window in zip(DAYS, self.days, strict=True)
        }
        return {"timezone": self.timezone, "days": named, "closed_size": self.closed_size}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> OfficeHours:
        """Raises ValueError for a time that is none."""
        days = raw["days"]
        return cls(
            days=tuple(_window(days.get(name)) for name in DAYS),
            timezone=str(raw.get("timezone", "UTC")),
            closed_size=int(raw.get("closed_size", 0)),
        )


def is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def read_clock(text: str) -> int | None:
    """Parse a time such as "07:30" or "24:00" into minutes of the day. None if it is no such time."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    return _DAY_MINUTES if text == "24:00" else int(match["hour"]) * 60 + int(match["minute"])


def format_hours(hours: Decimal) -> str:
    return f"{hours.quantize(Decimal('0.01')).normalize():f}"


def clock_text(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def describe(hours: OfficeHours) -> str:
    """Describe the office hours for people: "Monday to Friday 07:30 to 22:00 (Europe/Berlin)", for example."""
    parts = []
    for first, last in _runs(hours.days):
        window = hours.days[first]
        if window is not None:
            names = (DAYS[first].capitalize(), DAYS[last].capitalize())
            parts.append(f"{names[0] if first == last else ' to '.join(names)} {window}")
    return f"{', '.join(parts)} ({hours.timezone})"


def _runs(days: Sequence[Window | None]) -> Iterator[tuple[int, int]]:
    first = 0
    for day in range(1, len(days) + 1):
        if day == len(days) or days[day] != days[first]:
            yield first, day - 1
            first = day


def _window(raw: Any) -> Window | None:
    if not raw:
        return None
    start, end = (read_clock(str(text)) for text in raw)
    if start is None or end is None or start == _DAY_MINUTES:
        raise ValueError(f"{raw} are no hours such as 07:30 and 22:00")
    return Window(start, end)


def _instant(zone: ZoneInfo, day: date, minutes: int) -> datetime:
    """A time that a change to summer time leaves out counts as it would have been before the change."""
    days, rest = divmod(minutes, _DAY_MINUTES)
    local = datetime.combine(day + timedelta(days=days), time(rest // 60, rest % 60), tzinfo=zone)
    return local.astimezone(UTC)


def _merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
