"""Figures and charts of a deployment's first tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from deployments.models import Deployment
from deployments.selectors import deployments, serving
from deployments.selectors.deployments import RevisionStatus
from fleet.domain.metering import minute_of
from fleet.domain.telemetry import ServingStats
from fleet.selectors import telemetry
from fleet.selectors.telemetry import MinutePoint
from portal.core import clock
from portal.ui import charts
from portal.ui.charts import Chart, Mark, Point

CHARTED = timedelta(hours=1)
_MOST_MARKS = 6
# Events that move traffic; a reader looks for them when a line bends.
_MARKED = (
    "rollout running",
    "rollout promoting",
    "rollout paused",
    "rollout aborting",
)
_MOST_LETTERS = 22


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    milliseconds: float
    percent: float
    tone: str


@dataclass(frozen=True, slots=True)
class PackedRow:
    label: str
    url: str
    served_by: str


@dataclass(frozen=True, slots=True)
class TrafficCharts:
    """None where nothing was measured."""

    requests: Chart | None
    latency: Chart | None


def context_of(deployment: Deployment) -> dict[str, Any]:
    revisions = deployments.revisions_of(deployment)
    stats = serving.stats_of(deployment, revisions)
    since = clock.now() - CHARTED
    points = {
        revision.role: telemetry.series(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            names=[revision.workload_name],
            start=since,
        )
        for revision in revisions
    }
    drawn = traffic_charts(points, marks=_marks(deployment, since))
    return {
        "revisions": revisions,
        "stats": stats,
        "packed": packed_rows(deployment, revisions),
        "own_models": ", ".join(dict.fromkeys(_model_of(one.version_label) for one in revisions)),
        "window_words": f"last {serving.WINDOW_SECONDS // 60} minutes",
        "split": _split(stats) if stats else [],
        "requests_chart": drawn.requests,
        "latency_chart": drawn.latency,
    }


def packed_rows(deployment: Deployment, revisions: Sequence[RevisionStatus]) -> list[PackedRow]:
    """What answers at this address beside the deployment's own model, and through which revisions."""
    by_label: dict[str, list[str]] = {}
    for revision in revisions:
        for one in revision.spec.packed:
            by_label.setdefault(one.label, []).append(f"{revision.role} r{revision.number}")
    address = deployments.url_of(deployment)
    return [
        PackedRow(label, f"{address}/v2/models/{_model_of(label)}/infer", ", ".join(served))
        for label, served in by_label.items()
    ]


def _model_of(label: str) -> str:
    return label.rpartition(":")[0]


def traffic_charts(
    by_role: Mapping[str, list[MinutePoint]], *, marks: Sequence[Mark]
) -> TrafficCharts:
    return TrafficCharts(
        requests=minute_chart(
            by_role, lambda one: one.requests_per_second, "Requests per second", "req/s", marks
        ),
        latency=minute_chart(
            by_role, lambda one: one.mean_latency_ms, "Mean latency per request", "ms", marks
        ),
    )


def _split(stats: ServingStats) -> list[Part]:
    """Queue, input, compute, output of the mean request; empty when nothing was answered."""
    named = (
        ("Queue", stats.queue_ms, "warn"),
        ("Input", stats.input_ms, "idle"),
        ("Compute", stats.compute_ms, ""),
        ("Output", stats.output_ms, "idle"),
    )
    known = [(name, value, tone) for name, value, tone in named if value is not None]
    whole = sum(value for _, value, _ in known)
    return [
        Part(name, value, 100 * value / whole if whole else 0.0, tone)
        for name, value, tone in known
    ]


def minute_chart(
    by_role: Mapping[str, list[MinutePoint]],
    value: Callable[[MinutePoint], float | None],
    label: str,
    unit: str,
    marks: Sequence[Mark],
    threshold: float | None = None,
) -> Chart | None:
    """None when nothing was measured: an empty chart would look like zero.

    The running minute is left out: it is not over, so it would look like a fall.
    """
    running = minute_of(clock.now())
    found = [
        Point(at, role, amount)
        for role, points in by_role.items()
        for at, amount in _with_gaps([(one.at, value(one)) for one in points if one.at < running])
    ]
    if not any(point.value is not None for point in found):
        return None
    first = min(point.at for point in found)
    return charts.lines(
        label=label,
        points=found,
        unit=unit,
        threshold=threshold,
        marks=[mark for mark in marks if mark.at >= first],
    )


def _with_gaps(
    points: Sequence[tuple[datetime, float | None]],
) -> list[tuple[datetime, float | None]]:
    """A minute that nobody observed breaks the line instead of being drawn over."""
    found: list[tuple[datetime, float | None]] = []
    for at, value in points:
        if found and at - found[-1][0] > timedelta(minutes=1):
            found.append((found[-1][0] + timedelta(minutes=1), None))
        found.append((at, value))
    return found


def _marks(deployment: Deployment, since: datetime) -> list[Mark]:
    events = deployments.events_of(deployment).filter(at__gte=since)[:50]
    moved = [event for event in events if event.kind in _MARKED]
    return [Mark(event.at, _short(event.message)) for event in reversed(moved[:_MOST_MARKS])]


def _short(message: str) -> str:
    words = message.removeprefix("the candidate is ready; it gets ").split(":")[0]
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 1]}…"
