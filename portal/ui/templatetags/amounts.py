"""Filters that write amounts: money, sizes, ratios, GPU time. None is *not known*."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.core.definitions.figures import (
    format_exact_money,
    format_figure,
    format_milliseconds,
    format_money,
    format_percent,
    format_seconds,
)
from portal.ui import formats

register = template.Library()
UNKNOWN: Final = format_html('<span class="unknown">{}</span>', formats.NOT_KNOWN)
# The decimals that say nothing: those of 12.00, and the last of 0.50.
_ZEROS: Final = re.compile(r"(\.\d*?[1-9])0+(?!\d)|\.0+(?!\d)")


@register.filter
def money(amount: Decimal | str | int | None) -> str | SafeString:
    """Format dollars, with the exact amount on hover."""
    value = _decimal(amount)
    return UNKNOWN if value is None else _with_exact(format_money(value), format_exact_money(value))


@register.filter
def money_text(amount: Decimal | str | int | None) -> str:
    """Format dollars for an attribute or an option, which cannot have an element."""
    value = _decimal(amount)
    return formats.NOT_KNOWN if value is None else format_money(value)


@register.filter
def exact_money(amount: Decimal | None) -> str | SafeString:
    """Format a price that a person or AWS stated, with all of its digits."""
    return UNKNOWN if amount is None else format_exact_money(amount)


def _decimal(amount: Decimal | str | int | None) -> Decimal | None:
    if amount is None or amount == "":
        return None
    try:
        return Decimal(amount)
    except InvalidOperation:
        return None


class _CountedPrice(Protocol):
    @property
    def amount(self) -> Decimal: ...

    @property
    def note(self) -> str:
        """The reason why too few were counted for a price. Empty for enough."""


@register.filter
def counted_price(price: _CountedPrice | None) -> str | SafeString:
    if not price:
        return UNKNOWN
    if price.note:
        return format_html('<span class="dim" title="{}">too few</span>', price.note)
    return money(price.amount)


@register.filter
def filesize(count: int | None) -> str | SafeString:
    return UNKNOWN if count is None else formats.filesize(int(count))


@register.filter
def mib(count: float | None) -> str | SafeString:
    return UNKNOWN if count is None else formats.mib(count)


@register.filter
def percent(ratio: float | Decimal | None) -> str | SafeString:
    """Format a ratio 0..1 as a percentage, with four significant digits on hover."""
    if ratio is None:
        return UNKNOWN
    return _with_exact(format_percent(ratio), f"{format_figure(100 * float(ratio), 4)}%")


@register.filter
def gpus(count: Decimal | int | None) -> str | SafeString:
    """Format a number of GPUs, whole or shared: 2, 0.5, 14.125."""
    return UNKNOWN if count is None else f"{Decimal(count):.3f}".rstrip("0").rstrip(".")


@register.filter
def decimals(count: Decimal | float | None, places: int = 1) -> str | SafeString:
    """GPU hours, requests a second: what is small but real is not 0.0."""
    return UNKNOWN if count is None else formats.decimals(Decimal(count), places)


@register.filter
def gpu_time(milliseconds: int | None) -> str | SafeString:
    """Format GPU time in hours; 3,600,000 is one GPU for one hour."""
    if milliseconds is None:
        return UNKNOWN
    hours = Decimal(milliseconds) / 3_600_000
    return _with_exact(formats.gpu_hours(hours), f"{formats.decimals(hours, 4)} GPU-h")


@register.filter
def latency(milliseconds: float | Decimal | None) -> str | SafeString:
    """Format a latency: "12.3 ms", "905 ms", "5.3 s". Tenths of milliseconds are on hover."""
    if milliseconds is None:
        return UNKNOWN
    value = float(milliseconds)
    places = 1 if abs(value) >= 0.1 else 4
    return _with_exact(format_milliseconds(value), f"{value:,.{places}f} ms")


@register.filter
def seconds(value: float | Decimal | None) -> str | SafeString:
    """Format a time that was measured or estimated: "5.3 s", "2.2 min", "70 h". Tenths of seconds are on hover."""
    if value is None:
        return UNKNOWN
    return _with_exact(format_seconds(float(value)), f"{value:,.1f} s")


def _with_exact(text: str, exact: str) -> str | SafeString:
    """Return the text with the exact value on hover where it was rounded."""
    is_same = _without_zeros(text) == _without_zeros(exact)
    return text if is_same else format_html('<span title="{}">{}</span>', exact, text)


def _without_zeros(text: str) -> str:
    """Return "$12" for "$12.00", and "5%" for "5.00%"."""
    return _ZEROS.sub(r"\1", text)


@register.filter
def known(value: Any) -> Any:
    return UNKNOWN if value is None or value == "" else value
