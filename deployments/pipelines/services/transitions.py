"""The one way in which a pipeline's change moves between its states, and whom that is told to."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse

from deployments import audit_actions
from deployments.approvals.selectors import approvals
from deployments.models import Pipeline, PipelineChange
from deployments.states import CHANGE, ChangeState, DeploymentState
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict
from portal.notifications import events, services


def move(
    *,
    actor: Actor,
    change: PipelineChange,
    to: ChangeState,
    action: AuditAction,
    reason: str = "",
    deadline_at: datetime | None = None,
) -> None:
    """Inside a transaction. Compare-and-swap on state and evidence; raises Conflict when it moved."""
    old = ChangeState(change.state)
    if to not in CHANGE[old]:
        raise Conflict(f"The {change} is {old}, so it cannot become {to}.", code="change_state")
    finished_at = None if CHANGE[to] else clock.now()
    rows = PipelineChange.objects.filter(
        pk=change.pk, state=old, evidence_hash=change.evidence_hash
    )
    changed = rows.update(
        state=to, state_reason=reason, deadline_at=deadline_at, finished_at=finished_at
    )
    if changed == 0:
        raise Conflict(
            f"Someone else decided on the {change} at the same time. Reload the page.",
            code="change_state",
        )
    record(actor, change, action, before={"state": old}, after={"state": to}, reason=reason)
    change.state, change.state_reason = to, reason
    change.deadline_at, change.finished_at = deadline_at, finished_at
    if finished_at is not None:
        _close_unbegun(actor, change)


def record(
    actor: Actor,
    change: PipelineChange,
    action: AuditAction,
    *,
    before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
    reason: str = "",
) -> None:
    trail.record(
        actor=actor,
        action=action,
        obj=change,
        label=str(change),
        team_slug=change.team.slug,
        before=before,
        after=after,
        reason=reason,
        evidence=change.evidence_hash,
    )


def tell_wanted(change: PipelineChange) -> None:
    words = approvals.standing_of(change).words
    asked = f"{change.requester.display_name} sent a request. {words[:1].upper()}{words[1:]}."
    _tell(change, events.APPROVAL_REQUESTED.code, str(change), f"{asked} {change.comment}".strip())


def tell_decided(change: PipelineChange, words: str) -> None:
    _tell(change, events.APPROVAL_DECIDED.code, f"{change}: {change.state}", words)


def tell_finished(change: PipelineChange, words: str) -> None:
    _tell(change, events.CHANGE_FINISHED.code, f"{change}: {change.state}", words)


def _tell(change: PipelineChange, event: str, subject: str, words: str) -> None:
    path = reverse("pipeline", args=(change.team.slug, change.pipeline.name))
    services.notify(
        team=change.team,
        event=event,
        subject=f"Pipeline: {subject}",
        message=words,
        path=path,
        data={"state": change.state},
    )


def _close_unbegun(actor: Actor, change: PipelineChange) -> None:
    """A pipeline that was never approved has nothing on a cluster, and its name is free again."""
    if change.state == ChangeState.DONE:
        return
    rows = Pipeline.objects.filter(pk=change.pipeline_id, desired_generation=0, is_retired=False)
    if rows.update(
        is_retired=True,
        state=DeploymentState.RETIRED,
        state_reason=change.state_reason or f"{change.state}",
        next_check_at=None,
    ):
        trail.record(
            actor=actor,
            action=audit_actions.PIPELINE_RETIRED,
            obj=change.pipeline,
            label=str(change.pipeline),
            team_slug=change.team.slug,
            after={"state": DeploymentState.RETIRED},
            reason=change.state_reason,
        )
