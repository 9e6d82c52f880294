"""Format relative times, counts and sizes for pages. Money, times and ratios: `portal.core.definitions.figures`."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

NOT_KNOWN = "not known"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SOON = timedelta(seconds=5)
_TENTH = Decimal("0.1")


def span(seconds: float) -> str:
    """Format a time span in the largest whole unit: "40 s", "12 min", "3 h", "5 d", for example."""
    whole = int(abs(seconds))
    for size, name in _UNITS:
        if whole >= size:
            return f"{whole // size} {name}"
    return "0 s"


def since(at: datetime, now: datetime) -> str:
    """Format a relative time; beyond 60 days, the date itself."""
    gap = now - at
    if abs(gap) < _SOON:
        return "just now"
    if abs(gap) > timedelta(days=60):
        return f"{at.day} {at:%b %Y}"
    span_text = span(gap.total_seconds())
    return f"{span_text} ago" if gap > timedelta(0) else f"in {span_text}"


def decimals(value: Decimal, places: int) -> str:
    """Format with `places` decimals. Small values are never shown as zero: positive ones below the last digit show
    as "less than 0.1", negative ones with up to seven decimals.
    """
    least = Decimal(1).scaleb(-places)
    if 0 < value < least:
        return f"less than {least}"
    if -least < value < 0:
        # Only of adjustments, which take back what was counted before: as exact as milliseconds are in hours.
        return f"{value:.7f}".rstrip("0")
    return f"{value:,.{places}f}"


def gpu_hours(hours: Decimal) -> str:
    """Format GPU time: tenths of hours from a tenth on, four decimals below."""
    return f"{decimals(hours, 1 if abs(hours) >= _TENTH else 4)} GPU-h"


def filesize(count: int) -> str:
    return _binary(float(count), ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def mib(count: float) -> str:
    return _binary(float(count), ("MiB", "GiB", "TiB", "PiB"))


def _binary(size: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(size) < 1024:
            return f"{_short(size)} {unit}"
        size /= 1024
    return f"{_short(size)} {units[-1]}"


def _short(size: float) -> str:
    return f"{size:.0f}" if size >= 100 or size == int(size) else f"{size:.1f}"
