"""Figures and charts of a deployment's first tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.models import Deployment
from deployments.pages.selectors import chart_history
from deployments.serving.domain import chart_events
from deployments.serving.domain.chart_ranges import CHART_RANGES, DEFAULT, ChartRange
from deployments.serving.selectors import deployments, statistics
from deployments.serving.selectors.deployments import RevisionStatus
from deployments.serving.web.minute_chart import ChartSpan, minute_chart
from fleet.gpus.domain.intervals import minute_of
from fleet.telemetry.domain.counters import LanguageStats, ServingStats
from fleet.telemetry.domain.traffic_slots import TrafficSlot
from fleet.telemetry.selectors import traffic
from portal.core import clock
from portal.core.definitions import time_slots
from portal.ui.charts import Chart
from portal.ui.vega.marks import Mark


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
    """The charts of a deployment's traffic. None for a chart without values: `missing` says why nothing was read, and
    `idle` stands for a chart of requests if there were none.
    """

    requests: Chart | None
    latency: Chart | None
    first_token: Chart | None
    missing: str
    idle: str


def context_of(
    deployment: Deployment, *, with_charts: bool = True, chart_range: ChartRange = DEFAULT
) -> dict[str, Any]:
    """Return the context of the overview; the charts only where the page has none of this minute."""
    figures = _figures_of(deployment)
    revisions = figures["revisions"]
    return {
        **figures,
        **(_charts_of(deployment, revisions, chart_range) if with_charts else {}),
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


def _charts_of(
    deployment: Deployment, revisions: Sequence[RevisionStatus], chart_range: ChartRange
) -> dict[str, Any]:
    now = clock.now()
    start, end = time_slots.floor_to(now - chart_range.span, chart_range.step), minute_of(now)
    slots = traffic.read_slots(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        names=[revision.workload_name for revision in revisions],
        start=start,
        step=chart_range.step,
    )
    history = chart_history.read_history(deployment, start, now)
    charts = traffic_charts(
        {revision.role: slots[revision.workload_name] for revision in revisions},
        marks=[Mark(mark.at, mark.text) for mark in history.marks],
        span=ChartSpan(
            start,
            end,
            chart_range.step,
            chart_range.time_format,
            history.states.describe_absence,
        ),
        chart_range=chart_range,
    )
    return {
        "charts": charts,
        "chart_range": chart_range,
        "chart_ranges": CHART_RANGES,
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
    by_role: Mapping[str, Sequence[TrafficSlot]],
    *,
    marks: Sequence[Mark],
    span: ChartSpan,
    chart_range: ChartRange,
) -> TrafficCharts:
    def draw(title: str, unit: str, value: Callable[[TrafficSlot], float | None]) -> Chart | None:
        label = f"{title}, {chart_range.description}"
        return minute_chart(by_role, value, label, unit, marks, span=span)

    return TrafficCharts(
        requests=draw("Requests per second", "req/s", lambda slot: slot.requests_per_second),
        latency=draw("Mean latency per request", "ms", lambda slot: slot.mean_latency_ms),
        first_token=draw("Time to first token", "ms", lambda slot: slot.time_to_first_token_ms),
        missing="" if any(by_role.values()) else _describe_missing(span, chart_range),
        idle=f"No requests in the {chart_range.title}.",
    )


def _describe_missing(span: ChartSpan, chart_range: ChartRange) -> str:
    reason = span.find_reason(span.end, ())
    if reason == chart_events.NOT_READY:
        return "Not known yet. The first reading arrives within a minute of the first ready pod."
    why = "" if reason == chart_events.NO_READINGS else f": {reason}"
    return f"No readings in the {chart_range.title}{why}."


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
