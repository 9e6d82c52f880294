"""Filters that write amounts: money, sizes, ratios, GPU time. None is *not known*."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.core.definitions.figures import format_milliseconds
from portal.ui import formats

register = template.Library()
UNKNOWN: Final = format_html('<span class="unknown">{}</span>', formats.NOT_KNOWN)


@register.filter
def money(amount: Decimal | str | int | None) -> str | SafeString:
    if amount is None or amount == "":
        return UNKNOWN
    try:
        return formats.money(Decimal(amount))
    except InvalidOperation:
        return UNKNOWN


@register.filter
def money_with_exact(amount: Decimal | None) -> str | SafeString:
    """Format money, with all six decimals on hover."""
    return UNKNOWN if amount is None else _with_exact(formats.money(amount), f"${amount:.6f}")


@register.filter
def unit_price(amount: Decimal | None) -> str | SafeString:
    return UNKNOWN if amount is None else formats.unit_price(amount)


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
    return formats.unit_price(price.amount)


@register.filter
def filesize(count: int | None) -> str | SafeString:
    return UNKNOWN if count is None else formats.filesize(int(count))


@register.filter
def mib(count: float | None) -> str | SafeString:
    return UNKNOWN if count is None else formats.mib(count)


@register.filter
def percent(ratio: float | Decimal | None) -> str | SafeString:
    return UNKNOWN if ratio is None else formats.percent(ratio)


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
    """Format a latency as "12.3 ms", "905 ms" or "5.3 s", with its tenths of milliseconds on hover."""
    if milliseconds is None:
        return UNKNOWN
    value = float(milliseconds)
    return _with_exact(format_milliseconds(value), f"{value:,.1f} ms")


def _with_exact(text: str, exact: str) -> str | SafeString:
    return text if text == exact else format_html('<span title="{}">{}</span>', exact, text)


@register.filter
def known(value: Any) -> Any:
    return UNKNOWN if value is None or value == "" else value
