"""Format times, amounts, sizes and ratios for pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

NOT_KNOWN = "not known"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SOON = timedelta(seconds=5)
_CENT = Decimal("0.01")
_TENTH = Decimal("0.1")
_MOST_PLACES: Final = 8
_LEAST_PERCENT: Final = 0.01


def span(seconds: float) -> str:
    """Format a time span in the largest whole unit: "40 s", "12 min", "3 h", "5 d", for example."""
    whole = int(abs(seconds))
    for size, name in _UNITS:
        if whole >= size:
            return f"{whole // size} {name}"
    return "0 s"


def duration(seconds: float) -> str:
    """Format a duration in the two largest units: "40 s", "2 min 10 s", "3 h 5 min", for example."""
    whole = round(abs(seconds))
    parts = []
    for size, name in _UNITS:
        if whole >= size:
            parts.append(f"{whole // size} {name}")
            whole %= size
        elif parts:
            # Only neighbouring units: 1 h 5 s says less than 1 h.
            break
    return " ".join(parts[:2]) or "0 s"


def since(at: datetime, now: datetime) -> str:
    """Format a relative time; beyond 60 days, the date itself."""
    gap = now - at
    if abs(gap) < _SOON:
        return "just now"
    if abs(gap) > timedelta(days=60):
        return f"{at.day} {at:%b %Y}"
    span_text = span(gap.total_seconds())
    return f"{span_text} ago" if gap > timedelta(0) else f"in {span_text}"


def money(amount: Decimal) -> str:
    """Format dollars: with cents below 1,000, whole above, with up to six decimals below a cent."""
    size = abs(amount)
    sign = "\N{MINUS SIGN}" if amount < 0 else ""
    if size >= 1000:
        return f"{sign}${size:,.0f}"
    if size == 0 or size >= _CENT:
        return f"{sign}${size.quantize(_CENT, rounding=ROUND_HALF_EVEN)}"
    return f"{sign}${_significant(size)}"


def unit_price(amount: Decimal) -> str:
    """Format dollars of one unit: three significant digits below a dollar, because $0.01 may be $0.0138."""
    size = abs(amount)
    if size >= 1 or size == 0:
        return money(amount)
    sign = "\N{MINUS SIGN}" if amount < 0 else ""
    places = min(_MOST_PLACES, 2 - size.adjusted())
    text = f"{size:.{places}f}"
    return f"{sign}${text}" if Decimal(text) else f"{sign}$<{Decimal(1).scaleb(-_MOST_PLACES):f}"


def _significant(size: Decimal) -> str:
    text = f"{size:.6f}".rstrip("0")
    return text if Decimal(text) else "<0.000001"


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


def percent(ratio: float | Decimal) -> str:
    """Format a ratio 0..1 as a percentage: two decimals below 1%, one below 10%, none above."""
    value = float(ratio) * 100
    size = abs(value)
    if 0 < size < _LEAST_PERCENT / 2:
        return f"{'-' if value < 0 else ''}<{_LEAST_PERCENT}%"
    if size == 0 or size >= 10:
        return f"{value:.0f}%"
    return f"{value:.2f}%" if size < 1 else f"{value:.1f}%"
