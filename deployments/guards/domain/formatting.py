"""Guarded figures and their limits, as people read them."""

from __future__ import annotations

from deployments.guards.domain import sequential_tests
from deployments.guards.domain.betting import rates
from deployments.guards.domain.limits import COUNTED, KINDS, GuardLimit, Metric


def format_value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "not known"
    if metric in COUNTED:
        return f"{value:.2%}"
    if metric == Metric.GPU_UTILISATION:
        return f"{value:.0%}"
    if metric == Metric.THROUGHPUT_PER_GPU:
        # Stored as busy GPU milliseconds per inference.
        return f"{1000 / value:,.0f}/s" if value else "not known"
    if metric == Metric.COST_PER_1000:
        return f"${value:.4f}"
    unit = KINDS[metric].unit
    return f"{value:,.1f} {unit}"


def format_limit(limit: GuardLimit, stable: float | None) -> str:
    """For example "≤ 2.00% and ≤ 1.13% (1.25 times stable)"."""
    metric, parts = limit.metric, []
    if limit.max is not None:
        parts.append(f"≤ {format_value(metric, limit.max)}")
    if limit.max_ratio is not None:
        parts.append(_format_ratio(limit, stable))
    return " and ".join(parts)


def _format_ratio(limit: GuardLimit, stable: float | None) -> str:
    is_throughput = limit.metric == Metric.THROUGHPUT_PER_GPU
    sign = "≥" if is_throughput else "≤"
    rule = f"stable / {limit.max_ratio:g}" if is_throughput else f"{limit.max_ratio:g} times stable"
    most = None if stable is None else sequential_tests.most_of(limit, stable)
    if most is None:
        return f"{sign} {rule}"
    if stable is not None and limit.max_ratio is not None and most > limit.max_ratio * stable:
        rule = _format_floor(limit, stable, most)
    return f"{sign} {format_value(limit.metric, most)} ({rule})"


def _format_floor(limit: GuardLimit, stable: float, most: float) -> str:
    floor = format_value(limit.metric, limit.ignore_below)
    if limit.metric not in COUNTED:
        return f"stable + {floor}"
    if limit.ignore_below is None and most == rates.FLOOR_RATIO * stable:
        return f"floor of {rates.FLOOR_RATIO:g} times stable"
    return f"floor of {format_value(limit.metric, most)}"
