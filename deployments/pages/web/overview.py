"""Figures and charts of a deployment's first tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from deployments.models import Deployment
from deployments.serving.selectors import deployments, statistics, timeline
from deployments.serving.selectors.deployments import RevisionStatus
from deployments.serving.web.minute_chart import minute_chart
from fleet.telemetry.domain.counters import LanguageStats, ServingStats
from fleet.telemetry.selectors import requests as telemetry_requests
from fleet.telemetry.selectors.requests import MinutePoint
from portal.core import clock
from portal.ui.charts import Chart
from portal.ui.vega.marks import Mark

CHARTED = timedelta(hours=1)
_MAX_MARKS = 6
# Events that change traffic, marked in the charts.
_MARKED = (
    "rollout running",
    "rollout promoting",
    "rollout paused",
    "rollout aborting",
)
_MAX_LABEL_LENGTH = 22


@dataclass(frozen=True, slots=True)
class LatencyPart:
    name: str
    milliseconds: float
    percent: float
    tone: str


@dataclass(frozen=True, slots=True)
class MultiModelRow:
    label: str
    url: str
    served_by: str


@dataclass(frozen=True, slots=True)
class TrafficCharts:
    """The charts of a deployment's traffic. None for a chart without measurements."""

    requests: Chart | None
    latency: Chart | None
    first_token: Chart | None


def context_of(deployment: Deployment, *, with_charts: bool = True) -> dict[str, Any]:
    """Return the context of the overview; the charts only where the page has none of this minute."""
    figures = _figures_of(deployment)
    revisions = figures["revisions"]
    return {
        **figures,
        **(_charts_of(deployment, revisions) if with_charts else {}),
        "additional_models": multi_model_rows(deployment, revisions),
        "own_models": ", ".join(
            dict.fromkeys(_model_of(revision.version_label) for revision in revisions)
        ),
        "split": _split(figures["stats"]) if figures["stats"] else [],
    }


def _figures_of(deployment: Deployment) -> dict[str, Any]:
    revisions = deployments.revisions_of(deployment)
    return {
        "revisions": revisions,
        "stats": statistics.stats_of(deployment, revisions),
        "figures": statistics.figures_of([deployment])[deployment.pk],
        "window": f"last {statistics.WINDOW_SECONDS // 60} minutes",
    }


def _charts_of(deployment: Deployment, revisions: Sequence[RevisionStatus]) -> dict[str, Any]:
    since = clock.now() - CHARTED
    points = {
        revision.role: telemetry_requests.series(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            names=[revision.workload_name],
            start=since,
        )
        for revision in revisions
    }
    charts = traffic_charts(points, marks=_marks(deployment, since))
    return {
        "requests_chart": charts.requests,
        "latency_chart": charts.latency,
        "first_token_chart": charts.first_token,
    }


def multi_model_rows(
    deployment: Deployment, revisions: Sequence[RevisionStatus]
) -> list[MultiModelRow]:
    """Return additional models at this address, with the revisions that serve them."""
    by_label: dict[str, list[str]] = {}
    for revision in revisions:
        for model in revision.spec.additional_models:
            by_label.setdefault(model.label, []).append(f"{revision.role} r{revision.number}")
    address = deployments.url_of(deployment)
    return [
        MultiModelRow(label, f"{address}/v2/models/{_model_of(label)}/infer", ", ".join(roles))
        for label, roles in by_label.items()
    ]


def _model_of(label: str) -> str:
    return label.rpartition(":")[0]


def traffic_charts(
    by_role: Mapping[str, list[MinutePoint]], *, marks: Sequence[Mark]
) -> TrafficCharts:
    return TrafficCharts(
        requests=minute_chart(
            by_role, lambda point: point.requests_per_second, "Requests per second", "req/s", marks
        ),
        latency=minute_chart(
            by_role, lambda point: point.mean_latency_ms, "Mean latency per request", "ms", marks
        ),
        first_token=minute_chart(
            by_role, lambda point: point.time_to_first_token_ms, "Time to first token", "ms", marks
        ),
    )


def _split(stats: ServingStats) -> list[LatencyPart]:
    """Return the parts of the mean request's time. Empty without requests."""
    named = _split_of_text(stats, stats.language) if stats.language else _split_of_triton(stats)
    known = [(name, value, tone) for name, value, tone in named if value is not None]
    whole = sum(value for _, value, _ in known)
    return [
        LatencyPart(name, value, 100 * value / whole if whole else 0.0, tone)
        for name, value, tone in known
    ]


def _split_of_triton(stats: ServingStats) -> list[tuple[str, float | None, str]]:
    return [
        ("Queue", stats.queue_ms, "warn"),
        ("Input", stats.input_ms, "idle"),
        ("Compute", stats.compute_ms, ""),
        ("Output", stats.output_ms, "idle"),
    ]


def _split_of_text(
    stats: ServingStats, language: LanguageStats
) -> list[tuple[str, float | None, str]]:
    """Split the mean request's time by tokens. The time to the first token includes the queue. Each mean is
    over other requests while some run, so a difference may be below zero, which is shown as 0.
    """
    whole, first, queue = stats.mean_latency_ms, language.time_to_first_token_ms, stats.queue_ms
    if whole is None or first is None or queue is None:
        return []
    return [
        ("Queue", queue, "warn"),
        ("First token", max(0.0, first - queue), "idle"),
        ("Other tokens", max(0.0, whole - first), ""),
    ]


def _marks(deployment: Deployment, since: datetime) -> list[Mark]:
    events = timeline.list_events(deployment).filter(at__gte=since)[:50]
    moved = [event for event in events if event.kind in _MARKED]
    return [Mark(event.at, _short(event.message)) for event in reversed(moved[:_MAX_MARKS])]


def _short(message: str) -> str:
    label = message.removeprefix("the candidate is ready; it gets ").split(":")[0]
    return label if len(label) <= _MAX_LABEL_LENGTH else f"{label[: _MAX_LABEL_LENGTH - 1]}…"
