"""The watch of a deployment, as the page and REST show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from deployments.changes.selectors import safeguards
from deployments.guards.domain.answers.answer_metrics import AnswerKind
from deployments.health.domain import baseline, drift
from deployments.health.domain.baseline import BaselineMetric
from deployments.health.domain.drift import DayVerdict
from deployments.health.domain.state import MetricState, format_range, format_value
from deployments.models import Deployment, DeploymentHealth, HealthRecord
from deployments.states import HealthVerdict


@dataclass(frozen=True, slots=True)
class MetricView:
    """A metric as it is shown. `value`, `low` and `high` are in the metric's unit; None means not known."""

    metric: BaselineMetric
    label: str
    verdict: HealthVerdict
    value: float | None
    low: float | None
    high: float | None
    value_text: str
    range_text: str


@dataclass(frozen=True, slots=True)
class AnswersView:
    kind: AnswerKind
    label: str
    day: DayVerdict


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """The watch of a deployment as it is shown. `checked_at` is None before the first check. `metrics` and
    `answers` are empty where nothing was judged.
    """

    is_on: bool
    checked_at: datetime | None
    revision_number: int | None
    since: datetime | None
    verdict: HealthVerdict
    baseline_message: str
    metrics: Sequence[MetricView]
    golden_verdict: HealthVerdict
    golden_message: str
    golden_checked_at: datetime | None
    answers: Sequence[AnswersView]
    # Who wants to switch it off, and which approvals that needs; empty without such a request.
    off_requested: str

    @property
    def has_comparison(self) -> bool:
        return any(metric.value is not None for metric in self.metrics)


def view_of(deployment: Deployment) -> HealthSummary:
    rows = DeploymentHealth.objects.select_related("revision").filter(deployment=deployment)
    row = rows.first() or DeploymentHealth(deployment=deployment)
    metrics = [
        _metric(metric, MetricState.from_json(row.baseline[metric]))
        for metric in BaselineMetric
        if metric in row.baseline
    ]
    answers = [
        AnswersView(kind, drift.KINDS[kind].label, DayVerdict.from_json(row.answers[kind]))
        for kind in AnswerKind
        if kind in row.answers
    ]
    return HealthSummary(
        is_on=row.is_on,
        checked_at=row.checked_at,
        revision_number=row.revision.number if row.revision else None,
        since=row.since,
        verdict=_overall(
            [
                *(metric.verdict for metric in metrics),
                HealthVerdict(row.golden_verdict),
                *(answer.day.verdict for answer in answers),
            ]
        ),
        baseline_message=row.baseline_message,
        metrics=metrics,
        golden_verdict=HealthVerdict(row.golden_verdict),
        golden_message=row.golden_message,
        golden_checked_at=row.golden_checked_at,
        answers=answers,
        off_requested=safeguards.describe_open(deployment, safeguards.Safeguard.HEALTH),
    )


def history_of(deployment: Deployment) -> QuerySet[HealthRecord]:
    """List the records of a deployment, newest first."""
    return HealthRecord.objects.filter(deployment=deployment)


def _overall(verdicts: Sequence[HealthVerdict]) -> HealthVerdict:
    if HealthVerdict.FAILED in verdicts:
        return HealthVerdict.FAILED
    return HealthVerdict.OK if HealthVerdict.OK in verdicts else HealthVerdict.NOT_KNOWN


def _metric(metric: BaselineMetric, state: MetricState) -> MetricView:
    last = state.comparison
    return MetricView(
        metric=metric,
        label=baseline.KINDS[metric].label,
        verdict=state.verdict,
        value=last.value if last else None,
        low=last.low if last else None,
        high=last.high if last else None,
        value_text=format_value(metric, last.value) if last else "",
        range_text=format_range(metric, last) if last else "",
    )
