"""Measured numbers in messages, as people write them: never 1.2e+03."""

from __future__ import annotations

from decimal import Decimal


def format_figure(value: float, digits: int) -> str:
    """Format with `digits` significant digits, as "1,230" or "0.0012"."""
    rounded = Decimal(f"{value:.{digits}g}")
    return f"{rounded:,f}"


def format_milliseconds(value: float) -> str:
    """Format a time: tenths of milliseconds below 100 ms, tenths of seconds from a second on."""
    if value >= 1000:
        return f"{value / 1000:,.1f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"
