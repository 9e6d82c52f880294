"""Money, times and ratios in messages and on pages, as people write them: never 1.2e+03. One function for each kind."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

MINUS: Final = "\N{MINUS SIGN}"
_CENT: Final = Decimal("0.01")
# Less is written as "less than": no price of one unit is that low.
_LEAST_PLACES: Final = 8
_LEAST_PERCENT: Final = 0.01
# A unit of time, its milliseconds, and how many of it are written before the next larger unit is.
_TIME_UNITS: Final = (("s", 1_000, 60), ("min", 60_000, 60), ("h", 3_600_000, 100))
_DAY_MS: Final = 86_400_000


def format_figure(value: float, digits: int) -> str:
    """Format with `digits` significant digits, as "1,230" or "0.0012"."""
    rounded = Decimal(f"{value:.{digits}g}")
    return f"{rounded:,f}"


def format_money(amount: Decimal) -> str:
    """Format dollars: two significant digits below $1, cents below $10, whole dollars from there on."""
    size = abs(amount)
    sign = MINUS if amount < 0 else ""
    if size == 0:
        return "$0"
    if size >= 1:
        return f"{sign}{_dollars(size)}"
    if size < Decimal(1).scaleb(-_LEAST_PLACES):
        return f"{sign}<${Decimal(1).scaleb(-_LEAST_PLACES):f}"
    places = min(_LEAST_PLACES, 1 - size.adjusted())
    rounded = size.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    # Rounding may carry into the next digit: 0.0995 is 0.10, and 0.999 is 1.00.
    carried = max(2, min(places, 1 - rounded.adjusted()))
    return f"{sign}${rounded:.{carried}f}"


def _dollars(size: Decimal) -> str:
    cents = size.quantize(_CENT, rounding=ROUND_HALF_EVEN) if size < 10 else size
    return f"${cents:.2f}" if cents < 10 else f"${cents:,.0f}"


def format_exact_money(amount: Decimal) -> str:
    """Format dollars with all digits that the ledger keeps, and at least cents: "$0.605785", "$1,234.50"."""
    size = abs(amount)
    places = max(_LEAST_PLACES, 2 - size.adjusted()) if size else 2
    text = f"{size:,.{places}f}".rstrip("0")
    whole, _, rest = text.partition(".")
    return f"{MINUS if amount < 0 else ''}${whole}.{rest:0<2}"


def format_seconds(value: float) -> str:
    """Format a time in the largest unit that keeps two digits: "905 ms", "5.3 s", "2.2 min", "70 h", "12 d"."""
    return format_milliseconds(value * 1000) if value else "0 s"


def format_milliseconds(value: float) -> str:
    """Format a time as `format_seconds` does, with tenths of milliseconds below 100 ms."""
    size = abs(value)
    sign = MINUS if value < 0 else ""
    if size == 0:
        return "0 ms"
    if size < 0.1:
        return f"{sign}{_keep_two_digits(size * 1000)} µs"
    if round(size, 1) < 100:
        return f"{sign}{size:.1f} ms"
    if round(size) < 1000:
        return f"{sign}{size:.0f} ms"
    for unit, milliseconds, most in _TIME_UNITS:
        text = _keep_two_digits(size / milliseconds)
        if float(text) < most:
            return f"{sign}{text} {unit}"
    days = size / _DAY_MS
    return f"{sign}{_keep_two_digits(days) if days < 10 else format(days, ',.0f')} d"


def _keep_two_digits(size: float) -> str:
    """Format with one decimal below 10, unless it is 0, and as a whole number from there on."""
    text = f"{size:.1f}" if round(size, 1) < 10 else f"{size:.0f}"
    return text.removesuffix(".0")


def format_percent(ratio: float | Decimal) -> str:
    """Format a ratio 0..1 as a percentage with two significant digits, and at most two decimals."""
    value = float(ratio) * 100
    size = abs(value)
    sign = "-" if value < 0 else ""
    if size == 0:
        return "0%"
    if size < _LEAST_PERCENT / 2:
        return f"{sign}<{_LEAST_PERCENT}%"
    for places, least in ((2, 1), (1, 10)):
        if round(size, places) < least:
            return f"{sign}{size:.{places}f}%"
    return f"{sign}{size:.0f}%"
