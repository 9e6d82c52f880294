"""Stable beside candidate, minute by minute, with what was allowed and who moved what when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain.kinds import error_rate, latency_mean
from deployments.guards.domain.limits import GuardLimit
from deployments.models import Rollout, RolloutEvent
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary
from deployments.serving.domain import chart_events
from deployments.serving.web import minute_chart
from fleet.gpus.domain.intervals import minute_of
from fleet.telemetry.selectors import requests
from fleet.telemetry.selectors.requests import MinutePoint
from portal.core import clock
from portal.core.definitions.time_slots import TimedValues
from portal.ui.charts import Chart
from portal.ui.vega.marks import Mark

# The last hours of a rollout that takes days are the most useful.
_LONGEST: Final = timedelta(hours=6)
_LAST_MINUTES: Final = 5


@dataclass(frozen=True, slots=True)
class RolloutChart:
    """A chart of a rollout. `name` is its id in the page; `limit_text` names the dashed line, `period_text` the time."""

    name: str
    title: str
    chart: Chart
    limit_text: str
    period_text: str


def charts_of(view: RolloutSummary) -> list[RolloutChart]:
    """Return charts with measurements."""
    points, marks = _points_of(view.rollout), _marks_of(view.rollout)
    limits = view.plan.guards.limits
    limit, limit_text = _latency_limit(limits, points.get("baseline", points["stable"]))
    errors, errors_text = _limit_of(limits, error_rate.KIND.name)
    drawn = (
        ("weight", _weight_title(view), _weight_chart(view, points, marks), "as requested"),
        (
            "latency",
            "Mean latency",
            minute_chart.minute_chart(
                points, lambda point: point.mean_latency_ms, "Mean latency", "ms", marks, limit
            ),
            limit_text,
        ),
        (
            "errors",
            "Failed requests",
            minute_chart.minute_chart(
                points,
                lambda point: None if point.error_ratio is None else 100 * point.error_ratio,
                "Failed requests",
                "%",
                marks,
                None if errors is None else 100 * errors,
            ),
            errors_text if errors is not None else "",
        ),
        (
            "requests",
            "Requests per second",
            minute_chart.minute_chart(
                points,
                lambda point: point.requests_per_second,
                "Requests per second",
                "req/s",
                marks,
            ),
            "",
        ),
    )
    period = _describe_period(view.rollout)
    return [
        RolloutChart(f"rollout-{name}", title, chart, limit_text, period)
        for name, title, chart, limit_text in drawn
        if chart is not None
    ]


def _weight_title(view: RolloutSummary) -> str:
    return "Mirrored requests" if view.is_shadow else "Traffic weight"


def _points_of(rollout: Rollout) -> dict[str, list[MinutePoint]]:
    deployment = rollout.deployment
    start = max(rollout.created_at, (rollout.finished_at or clock.now()) - _LONGEST)
    named = {"stable": rollout.stable_revision, "candidate": rollout.candidate_revision}
    if rollout.baseline_revision is not None:
        named["baseline"] = rollout.baseline_revision
    return {
        role: requests.series(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            names=[revision.workload_name],
            start=start,
            end=rollout.finished_at,
        )
        for role, revision in named.items()
    }


def _describe_period(rollout: Rollout) -> str:
    is_long = (rollout.finished_at or clock.now()) - rollout.created_at > _LONGEST
    return "last 6 hours, per minute" if is_long else "whole rollout, per minute"


def _weight_chart(
    view: RolloutSummary, points: Mapping[str, list[MinutePoint]], marks: Sequence[Mark]
) -> Chart | None:
    """Draw the weight observed in each minute, with the requested weight at its end. Of a shadow: mirrored
    requests for each request that stable answered, while it is mirrored.
    """
    rates = {
        role: {point.at: point.requests_per_second for point in series}
        for role, series in points.items()
    }
    current = minute_of(clock.now())
    read_at = sorted({at for role in rates.values() for at in role if at < current})
    if not read_at:
        return None
    requested = _weights_of(view)
    answers_from = _answers_from(view.rollout) if view.is_shadow else None
    observed: list[tuple[datetime, float | None]] = []
    for at, mine in sorted(rates["candidate"].items()):
        if at >= current or (answers_from and at + timedelta(minutes=1) > answers_from):
            break
        others = sum(rates.get(role, {}).get(at, 0.0) for role in ("stable", "baseline"))
        total = others if view.is_shadow else mine + others
        observed.append((at, 100 * mine / total if total > 0 else None))
    known = [at for at, weight in observed if weight is not None]
    desired = [(at, _weight_at(requested, at + timedelta(minutes=1))) for at in known]
    series: dict[str, TimedValues] = {"candidate": observed, "requested": desired}
    # As long as the other charts, though the candidate is read later than stable.
    span = minute_chart.span_readings(read_at)
    return minute_chart.draw_series(series, _weight_title(view), "%", marks, span=span)


def _answers_from(rollout: Rollout) -> datetime | None:
    """Return since when the candidate answers users. None if it never did."""
    moved = rollouts.events_of(rollout).filter(kind="promoting").order_by("id").first()
    return None if moved is None else moved.at


def _weights_of(view: RolloutSummary) -> list[tuple[datetime, float]]:
    steps = view.plan.steps
    weights = [(view.rollout.created_at, 0.0)]
    for event in _events_of(view.rollout):
        if event.kind == "running" and event.step_index < len(steps):
            weights.append((event.at, float(steps[event.step_index].weight)))
        elif event.kind == "promoting":
            weights.append((event.at, 100.0))
        elif event.kind in ("aborting", "aborted"):
            weights.append((event.at, 0.0))
    return weights


def _weight_at(weights: Sequence[tuple[datetime, float]], at: datetime) -> float:
    return [weight for since, weight in weights if since <= at][-1]


def _latency_limit(
    limits: Sequence[GuardLimit], stable: Sequence[MinutePoint]
) -> tuple[float | None, str]:
    """Return the limit to draw. A relative limit is drawn at its present value: the latency of stable, or of
    the baseline, times the ratio.
    """
    limit, text = _limit_of(limits, latency_mean.KIND.name)
    if limit is not None or not text:
        return limit, text
    guard = _guard_on(limits, latency_mean.KIND.name)
    ratio = guard.max_ratio if guard else None
    known = [point.mean_latency_ms for point in stable[-_LAST_MINUTES:] if point.mean_latency_ms]
    return (ratio * sum(known) / len(known) if ratio and known else None), text


def _limit_of(limits: Sequence[GuardLimit], metric: str) -> tuple[float | None, str]:
    guard = _guard_on(limits, metric)
    if guard is None:
        return None, ""
    if guard.max is not None:
        return guard.max, f"limit: {guard.kind.format(guard.max)}"
    return None, f"limit: {guard.max_ratio:g} times stable"


def _guard_on(limits: Sequence[GuardLimit], metric: str) -> GuardLimit | None:
    return next((guard for guard in limits if guard.metric == metric), None)


def _marks_of(rollout: Rollout) -> list[Mark]:
    number = rollout.candidate_revision.number
    described = (
        (event.at, chart_events.describe_event(f"rollout {event.kind}", event.message, number))
        for event in _events_of(rollout)
    )
    return [Mark(at, text) for at, text in described if text]


def _events_of(rollout: Rollout) -> Iterator[RolloutEvent]:
    yield from rollouts.events_of(rollout).order_by("id")[:200]
