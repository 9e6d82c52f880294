"""Numbers and states for people."""

from __future__ import annotations

from collections.abc import Sequence

from slipway_client.types import Check, PreflightCheck, ServingStats


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:,.4g}{unit}"


def mark(ok: bool | None) -> str:  # noqa: FBT001  the three values of a check
    return {True: "✓", False: "✗", None: "?"}[ok]


def checks(rows: Sequence[Check]) -> list[str]:
    return [f"{mark(check.ok)} {check.name}: {check.detail}" for check in rows]


def preflight(rows: Sequence[PreflightCheck]) -> list[str]:
    """Format passed checks in one line each, the others with their fix."""
    lines = []
    for check in rows:
        lines.append(f"{mark(check.ok)} {check.name}: {check.detail}")
        if check.ok is False and check.fix:
            lines.append(f"    {check.fix}")
    return lines


def stats(figures: ServingStats | None) -> str:
    if figures is None:
        return "no metrics yet"
    parts = [
        f"{number(figures.requests_per_second)} requests/s",
        f"{number(figures.mean_latency_ms)} ms mean",
        f"{number(figures.p95_ms)} ms p95",
    ]
    if figures.error_ratio is not None:
        parts.append(f"{figures.error_ratio:.2%} errors")
    return ", ".join(parts)
