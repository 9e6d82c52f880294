"""The only writers of what a pipeline should be. Each raises the generation and makes the row due.

They run inside the transaction of whatever decided; the cluster follows by reconciliation.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models import F

from deployments import audit_actions
from deployments.models import ChangeRequest, Pipeline
from deployments.states import PipelineChangeKind
from portal.accounts.policy import SYSTEM, Actor
from portal.audit import trail
from portal.core import clock
from portal.core.wakeups import wake

PROGRESS_SECONDS: Final = 10 * 60


def apply(pipeline: Pipeline, change: ChangeRequest) -> None:
    """Write the state that an approved request desires."""
    if change.kind == PipelineChangeKind.RETIRE:
        _update(pipeline, is_retiring=True)
    elif change.kind == PipelineChangeKind.STOP:
        stop(pipeline, actor=SYSTEM, reason=change.comment)
    else:
        _update(pipeline, spec=change.pipeline_spec, is_stopped=False)


def stop(pipeline: Pipeline, *, actor: Actor, reason: str) -> None:
    _update(pipeline, is_stopped=True)
    trail.record(
        actor=actor,
        action=audit_actions.PIPELINE_STOPPED,
        obj=pipeline,
        team_slug=pipeline.team.slug,
        before={"is_stopped": False},
        after={"is_stopped": True},
        reason=reason,
    )


def _update(pipeline: Pipeline, **columns: Any) -> None:
    at = clock.now()
    Pipeline.objects.filter(pk=pipeline.pk).update(
        desired_generation=F("desired_generation") + 1,
        next_check_at=at,
        progress_deadline_at=at + timedelta(seconds=PROGRESS_SECONDS),
        **columns,
    )
    pipeline.refresh_from_db()
    wake("deployments.reconcile_pipeline", pipeline.pk)
