"""Limits on counters, as people read them."""

from __future__ import annotations

from deployments.guards.domain import sequential_tests
from deployments.guards.domain.betting import rates
from deployments.guards.domain.limits import GuardLimit


def format_limit(limit: GuardLimit, stable: float | None) -> str:
    """Format a limit: "≤ 2.00% and ≤ 1.13% (1.25 times stable)"."""
    parts = []
    if limit.max is not None:
        parts.append(f"≤ {limit.kind.format(limit.max)}")
    if limit.max_ratio is not None:
        parts.append(_format_ratio(limit, stable))
    return " and ".join(parts)


def _format_ratio(limit: GuardLimit, stable: float | None) -> str:
    is_inverse = limit.kind.is_inverse
    sign = "≥" if is_inverse else "≤"
    rule = f"stable / {limit.max_ratio:g}" if is_inverse else f"{limit.max_ratio:g} times stable"
    most = None if stable is None else sequential_tests.most_of(limit, stable)
    if most is None:
        return f"{sign} {rule}"
    if stable is not None and limit.max_ratio is not None and most > limit.max_ratio * stable:
        rule = _format_floor(limit, stable, most)
    return f"{sign} {limit.kind.format(most)} ({rule})"


def _format_floor(limit: GuardLimit, stable: float, most: float) -> str:
    floor = limit.kind.format(limit.ignore_below)
    if not limit.kind.is_rate:
        return f"stable + {floor}"
    if limit.ignore_below is None and most == rates.FLOOR_RATIO * stable:
        return f"floor of {rates.FLOOR_RATIO:g} times stable"
    return f"floor of {limit.kind.format(most)}"
