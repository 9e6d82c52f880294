"""Set and remove the standing targets of a deployment."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction

from deployments import audit_actions
from deployments.models import Deployment, ServiceTarget, TargetCount
from deployments.serving.selectors import deployments
from deployments.serving.services import timeline
from deployments.states import TargetMetric
from deployments.targets.domain import metrics
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound


@dataclass(frozen=True, slots=True)
class TargetDraft:
    metric: TargetMetric
    objective_percent: Decimal
    window_days: int
    threshold_ms: int | None = None


def set_target(*, actor: User, deployment_id: int, draft: TargetDraft) -> ServiceTarget:
    """Create or change the one target of this metric. A changed limit is counted again from the telemetry that is kept;
    another objective or window applies to what was counted.
    """
    deployment = _changeable(actor, deployment_id)
    problems = metrics.problems(
        draft.metric, float(draft.objective_percent), draft.window_days, draft.threshold_ms
    )
    if problems:
        raise Invalid(next(iter(problems.values())), fields=problems)
    at = clock.now()
    with transaction.atomic():
        # Two that set the same target wait for each other.
        Deployment.objects.select_for_update(no_key=True).get(pk=deployment.pk)
        rows = ServiceTarget.objects.filter(deployment=deployment, metric=draft.metric)
        row = rows.first()
        before = _facts(row) if row else {}
        if row is None:
            row = ServiceTarget(
                deployment=deployment,
                metric=draft.metric,
                created_by=actor,
                created_at=at,
                next_check_at=at,
            )
        elif row.threshold_ms != draft.threshold_ms:
            TargetCount.objects.filter(target=row).delete()
            row.counted_until = None
            # A count that is running has the old limit: without its lease it writes nothing.
            row.lease_until, row.lease_token, row.next_check_at = None, "", at
        row.objective_percent = draft.objective_percent
        row.window_days, row.threshold_ms = draft.window_days, draft.threshold_ms
        if _facts(row) == before:
            return row
        row.save()
        _record(actor, audit_actions.TARGET_SET, row, before=before, after=_facts(row))
        timeline.note(
            deployment=deployment, kind="target", message=f"target set: {_text(row)}", actor=actor
        )
    return row


def remove(*, actor: User, deployment_id: int, metric: TargetMetric) -> None:
    """Remove a target and its counts. Raises NotFound without one."""
    deployment = _changeable(actor, deployment_id)
    with transaction.atomic():
        rows = ServiceTarget.objects.select_for_update().filter(
            deployment=deployment, metric=metric
        )
        row = rows.first()
        if row is None:
            raise NotFound(f"{deployment} has no target of {metrics.KINDS[metric].label}.")
        _record(actor, audit_actions.TARGET_REMOVED, row, before=_facts(row), after={})
        timeline.note(
            deployment=deployment,
            kind="target",
            message=f"target removed: {_text(row)}",
            actor=actor,
        )
        row.delete()


def _changeable(actor: User, deployment_id: int) -> Deployment:
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired:
        raise Conflict(f"{deployment} is retired. It can have no targets.", code="retired")
    return deployment


def _facts(row: ServiceTarget) -> dict[str, Any]:
    return {
        "metric": str(row.metric),
        "objective_percent": f"{float(row.objective_percent):g}",
        "window_days": row.window_days,
        "threshold_ms": row.threshold_ms,
    }


def _text(row: ServiceTarget) -> str:
    metric, objective = TargetMetric(row.metric), float(row.objective_percent)
    return f"{metrics.describe(metric, objective, row.threshold_ms)}, {row.window_days} days"


def _record(
    actor: User,
    action: AuditAction,
    row: ServiceTarget,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    trail.record(
        actor=actor,
        action=action,
        obj=row.deployment,
        label=str(row.deployment),
        team_slug=row.deployment.team.slug,
        before=before,
        after=after,
    )
