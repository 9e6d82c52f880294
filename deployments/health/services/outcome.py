"""Record a check: the state, lines of the history, and one notification for all that got worse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse

from deployments.health.domain import drift
from deployments.health.domain.state import Checked
from deployments.health.services.answer_days import JudgedDays
from deployments.health.services.probes import Probed
from deployments.models import AnswerDay, DeploymentHealth, HealthRecord, Revision
from deployments.states import HealthCheckKind, HealthVerdict
from portal.notifications import events, services

KEPT: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class HealthCheckOutcome:
    """The result of one check. `probed` is None if golden requests were not sent."""

    revision: Revision
    since: datetime
    baseline: Checked
    probed: Probed | None
    days: JudgedDays
    at: datetime


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the history to write. `is_alert`: people are notified of it."""

    kind: HealthCheckKind
    verdict: HealthVerdict
    message: str
    subject: str = ""
    is_alert: bool = False


def record(row: DeploymentHealth, made: HealthCheckOutcome) -> None:
    """Call inside a transaction, once for each check."""
    lines = [*_baseline_lines(made), *_golden_lines(row, made), *_day_lines(row, made)]
    _update(row, made)
    AnswerDay.objects.bulk_create(made.days.recorded, ignore_conflicts=True)
    records = [
        HealthRecord(
            deployment=row.deployment,
            at=made.at,
            kind=line.kind,
            subject=line.subject,
            verdict=line.verdict,
            message=line.message,
            revision_number=made.revision.number,
        )
        for line in lines
    ]
    if not records:
        return
    HealthRecord.objects.bulk_create(records)
    HealthRecord.objects.filter(deployment=row.deployment, at__lt=made.at - KEPT).delete()
    _notify(row, [line.message for line in lines if line.is_alert])


def _baseline_lines(made: HealthCheckOutcome) -> Iterator[_Line]:
    for change in made.baseline.changes:
        verdict = HealthVerdict.FAILED if change.is_left else HealthVerdict.OK
        yield _Line(
            HealthCheckKind.BASELINE, verdict, change.message, change.metric, change.is_left
        )


def _golden_lines(row: DeploymentHealth, made: HealthCheckOutcome) -> Iterator[_Line]:
    """Yield a line when the verdict changes; what did not answer is neither right nor wrong."""
    probed = made.probed
    if probed is None or probed.verdict == HealthVerdict.NOT_KNOWN:
        return
    is_same_revision = row.revision_id == made.revision.pk
    if is_same_revision and probed.verdict == row.golden_verdict:
        return
    is_failed = probed.verdict == HealthVerdict.FAILED
    yield _Line(HealthCheckKind.GOLDEN, probed.verdict, probed.message, is_alert=is_failed)


def _day_lines(row: DeploymentHealth, made: HealthCheckOutcome) -> Iterator[_Line]:
    """Yield a line for each day; people are notified of the first bad one in a row."""
    before = row.answers if row.revision_id == made.revision.pk else {}
    for kind, day in made.days.verdicts.items():
        was_failed = before.get(kind, {}).get("verdict") == HealthVerdict.FAILED
        is_failed = day.verdict == HealthVerdict.FAILED
        message = f"{drift.KINDS[kind].label}: {day.message}"
        yield _Line(
            HealthCheckKind.ANSWERS, day.verdict, message, kind, is_failed and not was_failed
        )


def _update(row: DeploymentHealth, made: HealthCheckOutcome) -> None:
    is_same_revision = row.revision_id == made.revision.pk
    if not is_same_revision:
        row.golden_verdict, row.golden_message = HealthVerdict.NOT_KNOWN, ""
        row.golden_checked_at, row.answers = None, {}
    row.revision, row.since, row.judged_days = made.revision, made.since, made.days.judged
    row.checked_at = made.at
    row.baseline = {
        metric.value: metric_state.to_json()
        for metric, metric_state in made.baseline.states.items()
    }
    row.baseline_message = made.baseline.message
    if made.probed is not None:
        is_known = made.probed.verdict != HealthVerdict.NOT_KNOWN
        # What did not answer keeps its last verdict, with the reason.
        row.golden_verdict = made.probed.verdict if is_known else row.golden_verdict
        row.golden_message, row.golden_checked_at = made.probed.message, made.at
    if made.days.verdicts:
        row.answers = {kind.value: day.to_json() for kind, day in made.days.verdicts.items()}
    row.save(
        update_fields=[
            "revision",
            "since",
            "judged_days",
            "checked_at",
            "baseline",
            "baseline_message",
            "golden_verdict",
            "golden_message",
            "golden_checked_at",
            "answers",
        ]
    )


def _notify(row: DeploymentHealth, messages: list[str]) -> None:
    if not messages:
        return
    deployment = row.deployment
    services.notify(
        team=deployment.team,
        event=events.DEPLOYMENT_HEALTH.code,
        subject=f"{deployment}: {messages[0]}",
        message=". ".join(messages) + ".",
        path=reverse("health", args=(deployment.team.slug, deployment.name)),
        data={"deployment_id": deployment.pk},
    )
