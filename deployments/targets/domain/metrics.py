"""The metrics of standing targets: what each counts, and which settings it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deployments.states import TargetMetric

LEAST_PERCENT: Final = 90.0
MOST_PERCENT: Final = 99.99
WINDOWS: Final = (7, 14, 28, 30)
MOST_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class MetricKind:
    """A metric of targets. `good` says what a good request is, `source` where the counts come from."""

    label: str
    has_threshold: bool
    good: str
    source: str


KINDS: Final[Mapping[TargetMetric, MetricKind]] = {
    TargetMetric.AVAILABILITY: MetricKind(
        "Availability",
        has_threshold=False,
        good="answered without an error",
        source="request counters of the model server, by the minute",
    ),
    TargetMetric.P95: MetricKind(
        "Latency (p95)",
        has_threshold=True,
        good="in a reading whose p95 is within the limit",
        source="summary of Triton, which must be switched on",
    ),
    TargetMetric.FIRST_TOKEN: MetricKind(
        "Time to first token",
        has_threshold=True,
        good="first token within the limit",
        source="histogram of the language model server; a limit between two of its bounds counts as the lower one",
    ),
}


def describe(metric: TargetMetric, objective_percent: float, threshold_ms: int | None) -> str:
    share = f"{objective_percent:g}% of requests"
    if metric == TargetMetric.AVAILABILITY:
        return f"{share} without an error"
    if metric == TargetMetric.P95:
        return f"{share} while p95 is at most {threshold_ms:,} ms"
    return f"{share} with the first token within {threshold_ms:,} ms"


def problems(
    metric: TargetMetric, objective_percent: float, window_days: int, threshold_ms: int | None
) -> dict[str, str]:
    """Return the problem of each wrong field, by its name, with what to do."""
    fixes = {}
    if not LEAST_PERCENT <= objective_percent <= MOST_PERCENT:
        fixes["objective_percent"] = f"Use {LEAST_PERCENT:g} to {MOST_PERCENT:g} percent."
    if window_days not in WINDOWS:
        fixes["window_days"] = f"Use one of {', '.join(map(str, WINDOWS))} days."
    if not KINDS[metric].has_threshold:
        if threshold_ms is not None:
            fixes["threshold_ms"] = "Availability has no limit. Leave it out."
    elif threshold_ms is None or not 1 <= threshold_ms <= MOST_MS:
        fixes["threshold_ms"] = f"Use 1 to {MOST_MS:,} ms."
    return fixes
