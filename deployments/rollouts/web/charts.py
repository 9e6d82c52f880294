"""Stable beside candidate, minute by minute, with what was allowed and who moved what when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain import formatting
from deployments.guards.domain.limits import Metric
from deployments.models import Rollout, RolloutEvent
from deployments.plans.domain import rollout_plan
from deployments.rollouts.selectors import rollouts
from deployments.serving.web import minute_chart
from fleet.telemetry.selectors import requests
from fleet.telemetry.selectors.requests import MinutePoint
from portal.core import clock
from portal.ui import charts
from portal.ui.charts import Chart, Mark, Point

# Of a rollout that takes days the last hours tell most.
_LONGEST: Final = timedelta(hours=6)
_MARKED: Final = ("running", "promoting", "paused", "aborting")
_MOST_MARKS: Final = 6
_MOST_LETTERS: Final = 24
_LAST_MINUTES: Final = 5


@dataclass(frozen=True, slots=True)
class RolloutChart:
    """`name` is its id in the page; `limit_words` says what the dashed line is."""

    name: str
    title: str
    chart: Chart
    limit_words: str = ""


def charts_of(found: Rollout) -> list[RolloutChart]:
    """Only of what was measured."""
    points = _points_of(found)
    marks = _marks_of(found)
    limit, limit_words = _latency_limit(found, points["stable"])
    errors, errors_words = _limit_of(found, Metric.ERROR_RATE)
    drawn = (
        ("share", _share_title(found), _share_chart(found, points, marks), "as requested"),
        (
            "latency",
            "Mean latency",
            minute_chart.minute_chart(
                points, lambda one: one.mean_latency_ms, "Mean latency", "ms", marks, limit
            ),
            limit_words,
        ),
        (
            "errors",
            "Failed requests",
            minute_chart.minute_chart(
                points,
                lambda one: None if one.error_ratio is None else 100 * one.error_ratio,
                "Failed requests",
                "%",
                marks,
                None if errors is None else 100 * errors,
            ),
            errors_words if errors is not None else "",
        ),
        (
            "requests",
            "Requests per second",
            minute_chart.minute_chart(
                points, lambda one: one.requests_per_second, "Requests per second", "req/s", marks
            ),
            "",
        ),
    )
    return [
        RolloutChart(f"rollout-{name}", title, chart, words)
        for name, title, chart, words in drawn
        if chart is not None
    ]


def _share_title(found: Rollout) -> str:
    return "Mirrored requests" if rollouts.is_shadow(found) else "Traffic weight"


def _points_of(found: Rollout) -> dict[str, list[MinutePoint]]:
    deployment = found.deployment
    start = max(found.created_at, (found.finished_at or clock.now()) - _LONGEST)
    named = {"stable": found.stable_revision, "candidate": found.candidate_revision}
    return {
        role: requests.series(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            names=[revision.workload_name],
            start=start,
            end=found.finished_at,
        )
        for role, revision in named.items()
    }


def _share_chart(
    found: Rollout, points: Mapping[str, list[MinutePoint]], marks: Sequence[Mark]
) -> Chart | None:
    """Observed in each minute, beside the weight that was asked for at its end. Of a shadow it is
    how many copies came for each request that stable answered, as long as it is mirrored.
    """
    rates = {
        role: {one.at: one.requests_per_second for one in ones} for role, ones in points.items()
    }
    asked, is_shadow = _weights_of(found), rollouts.is_shadow(found)
    answers_from = _answers_from(found) if is_shadow else None
    drawn: list[Point] = []
    for at, mine in sorted(rates["candidate"].items()):
        if answers_from is not None and at + timedelta(minutes=1) > answers_from:
            break
        others = rates["stable"].get(at, 0.0)
        total = others if is_shadow else mine + others
        if total > 0:
            drawn.append(Point(at, "candidate", 100 * mine / total))
            drawn.append(Point(at, "requested", _weight_at(asked, at + timedelta(minutes=1))))
    if not drawn:
        return None
    return charts.lines(label=_share_title(found), points=drawn, unit="%", marks=marks)


def _answers_from(found: Rollout) -> datetime | None:
    """Since when the candidate answers users, if ever."""
    moved = rollouts.events_of(found).filter(kind="promoting").order_by("id").first()
    return None if moved is None else moved.at


def _weights_of(found: Rollout) -> list[tuple[datetime, float]]:
    steps = found.steps
    weights = [(found.created_at, 0.0)]
    for event in _events_of(found):
        if event.kind == "running" and event.step_index < len(steps):
            weights.append((event.at, float(steps[event.step_index]["weight"])))
        elif event.kind == "promoting":
            weights.append((event.at, 100.0))
        elif event.kind in ("aborting", "aborted"):
            weights.append((event.at, 0.0))
    return weights


def _weight_at(weights: Sequence[tuple[datetime, float]], at: datetime) -> float:
    return [weight for since, weight in weights if since <= at][-1]


def _latency_limit(found: Rollout, stable: Sequence[MinutePoint]) -> tuple[float | None, str]:
    """Of a relative limit the value now: what the stable revision takes, times the ratio."""
    limit, words = _limit_of(found, Metric.LATENCY_MEAN)
    if limit is not None or not words:
        return limit, words
    ratio = _ratio_of(found, Metric.LATENCY_MEAN)
    known = [one.mean_latency_ms for one in stable[-_LAST_MINUTES:] if one.mean_latency_ms]
    return (ratio * sum(known) / len(known) if ratio and known else None), words


def _limit_of(found: Rollout, metric: Metric) -> tuple[float | None, str]:
    for guard in rollout_plan.from_json(found.plan).guards:
        if guard.metric != metric:
            continue
        if guard.max is not None:
            return guard.max, f"limit: {formatting.value_words(metric, guard.max)}"
        return None, f"limit: {guard.max_ratio:g} times stable"
    return None, ""


def _ratio_of(found: Rollout, metric: Metric) -> float | None:
    guards = rollout_plan.from_json(found.plan).guards
    return next((guard.max_ratio for guard in guards if guard.metric == metric), None)


def _marks_of(found: Rollout) -> list[Mark]:
    moved = [event for event in _events_of(found) if event.kind in _MARKED]
    return [Mark(event.at, _short(event)) for event in moved[-_MOST_MARKS:]]


def _events_of(found: Rollout) -> Iterator[RolloutEvent]:
    yield from rollouts.events_of(found).order_by("id")[:200]


def _short(event: RolloutEvent) -> str:
    words = event.message.removeprefix("the candidate is ready; it gets ").split(":")[0]
    words = words.removeprefix("promoted ")
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 1]}…"
