"""The targets of a deployment with their error budget and burn rates, from what was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db.models import Count, Q, Sum

from deployments.models import Deployment, ServiceTarget, TargetCount
from deployments.states import TargetMetric
from deployments.targets.domain import burn, metrics
from deployments.targets.domain.burn import RULES, Evaluation, RequestSums
from deployments.targets.domain.metrics import MetricKind
from fleet.gpus.domain.intervals import hour_of
from portal.core import clock

_MINUTES_PER_DAY: Final = 1440
_BURN_MINUTES: Final = sorted({m for r in RULES for m in (r.long_minutes, r.short_minutes)})


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """A target with what was counted for it."""

    target: ServiceTarget
    evaluation: Evaluation

    @property
    def metric(self) -> TargetMetric:
        return TargetMetric(self.target.metric)

    @property
    def kind(self) -> MetricKind:
        return metrics.KINDS[self.metric]

    @property
    def description(self) -> str:
        objective = float(self.target.objective_percent)
        return metrics.describe(self.metric, objective, self.target.threshold_ms)


def list_of(deployment: Deployment) -> list[TargetSummary]:
    rows = list(ServiceTarget.objects.filter(deployment=deployment).order_by("metric"))
    evaluated = evaluate(rows, at=clock.now())
    return [TargetSummary(row, evaluated[row.pk]) for row in rows]


def evaluate(targets: Sequence[ServiceTarget], *, at: datetime) -> dict[int, Evaluation]:
    """Evaluate targets in two queries, by their primary key. The window of a target is whole hours and the
    running one.
    """
    if not targets:
        return {}
    windows = _windows(targets, at)
    burning = _burn_windows(targets, at)
    return {
        target.pk: _evaluate(
            target, windows.get(target.pk, RequestSums()), burning.get(target.pk, {})
        )
        for target in targets
    }


def _evaluate(
    target: ServiceTarget, window: RequestSums, by_minutes: Mapping[int, RequestSums]
) -> Evaluation:
    objective = float(target.objective_percent)
    budget = burn.budget_of(objective)
    rules = [
        burn.judge(
            rule,
            by_minutes.get(rule.long_minutes, RequestSums()),
            by_minutes.get(rule.short_minutes, RequestSums()),
            budget=budget,
        )
        for rule in RULES
    ]
    return burn.evaluate(
        objective_percent=objective,
        window=window,
        window_minutes=target.window_days * _MINUTES_PER_DAY,
        rules=rules,
    )


def _windows(targets: Sequence[ServiceTarget], at: datetime) -> dict[int, RequestSums]:
    spans = {target.window_days for target in targets}
    within = reduce(
        or_,
        (
            Q(target__window_days=days, start__gte=hour_of(at - timedelta(days=days)))
            for days in spans
        ),
    )
    rows = (
        TargetCount.objects.filter(within, target__in=targets, seconds=3600)
        .values_list("target_id")
        .annotate(Sum("total"), Sum("bad"), Sum("known_minutes"))
        .order_by()
    )
    return {pk: RequestSums(*sums) for pk, *sums in rows}


def _burn_windows(
    targets: Sequence[ServiceTarget], at: datetime
) -> dict[int, dict[int, RequestSums]]:
    annotations: dict[str, Any] = {}
    for minutes in _BURN_MINUTES:
        within = Q(start__gt=at - timedelta(minutes=minutes))
        annotations[f"total_{minutes}"] = Sum("total", filter=within, default=0)
        annotations[f"bad_{minutes}"] = Sum("bad", filter=within, default=0)
        annotations[f"known_{minutes}"] = Count("pk", filter=within)
    longest = at - timedelta(minutes=_BURN_MINUTES[-1])
    rows = (
        TargetCount.objects.filter(target__in=targets, seconds=60, start__gt=longest, start__lte=at)
        .values("target_id")
        .annotate(**annotations)
        .order_by()
    )
    return {
        row["target_id"]: {
            minutes: RequestSums(
                row[f"total_{minutes}"], row[f"bad_{minutes}"], row[f"known_{minutes}"]
            )
            for minutes in _BURN_MINUTES
        }
        for row in map(dict[str, Any], rows)
    }
