"""Turn an approved request into the desired state of its subject; reconciliation does the rest."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments import audit_actions
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import approvals, decisions, transitions
from deployments.changes.services import notifications as change_notifications
from deployments.models import ChangeRequest, Rollout
from deployments.pipelines.services import desired_state as pipeline_desired_state
from deployments.rollouts.domain import decide
from deployments.rollouts.services import notifications as rollout_notifications
from deployments.rollouts.services import prometheus_readings
from deployments.serving.selectors import revisions
from deployments.serving.services import desired_state, stopping, timeline
from deployments.states import ChangeKind, ChangeState, RolloutPhase
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock, leases, tracing
from portal.core.errors import Conflict
from portal.core.wakeups import wake

_LEASE_SECONDS = 30
_RELATED = (
    "team",
    "deployment__team",
    "deployment__cluster",
    "pipeline__team",
    "pipeline__cluster",
    "requester",
)


def sweep(*, limit: int = 50) -> int:
    """Begin approved requests and expire those that nobody decided on."""
    due = leases.due(ChangeRequest, limit=limit)
    for change_id in due:
        apply_change(change_id=change_id)
    return len(due)


def apply_change(*, change_id: int) -> int | None:
    """Begin an approved request, or expire an old one. Returns a deployment to reconcile now."""
    lease = leases.claim(ChangeRequest, change_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return None
    change = ChangeRequest.objects.select_related(*_RELATED).get(pk=change_id)
    if change.deployment is not None:
        revisions.load_onto(change, change.deployment)
    try:
        with tracing.span_for_each("apply change request", _traced(change)):
            begun = _step(change)
    except Conflict:
        # Someone moved it meanwhile, and the row says what is next.
        begun = None
    # Not after other errors: then the lease expires, and the row is due again at once.
    deadline_at = ChangeRequest.objects.values_list("deadline_at", flat=True).get(pk=change_id)
    deadline = approvals.next_deadline(change_id, deadline_at)
    is_open = change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED)
    leases.release(ChangeRequest, lease, next_check_at=deadline if is_open else None)
    return begun


def _traced(change: ChangeRequest) -> list[tuple[str, tracing.Attributes]]:
    """Return the traces of a change. Only approved ones have them: others are looked at each few minutes until
    somebody decides.
    """
    if change.state != ChangeState.APPROVED:
        return []
    return [(change.trace, {"slipway.change": change.pk, "slipway.kind": change.kind})]


def _step(change: ChangeRequest) -> int | None:
    is_late = change.deadline_at is not None and clock.now() >= change.deadline_at
    if change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED) and is_late:
        decisions.expire(change=change)
        return None
    if change.state == ChangeState.SUBMITTED:
        approvals.refresh(change)
        approvals.void_lapsed(change)
    if change.state != ChangeState.APPROVED:
        return None
    if not approvals.is_approved_now(change):
        _reopen(change)
        return None
    _begin(change)
    return change.deployment_id


def _reopen(change: ChangeRequest) -> None:
    """Return the request to the approvers, with the evidence as it is now."""
    deadline_at = clock.now() + timedelta(seconds=transitions.SUBMITTED_SECONDS)
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.SUBMITTED,
            action=audit_actions.CHANGE_REOPENED,
            reason=approvals.CHANGED,
            deadline_at=deadline_at,
        )
        approvals.void(change, approvals.CHANGED)
        ChangeRequest.objects.filter(pk=change.pk).update(**approvals.bind(change))
        change_notifications.approval_requested(change)


def _begin(change: ChangeRequest) -> None:
    """Begin to apply a change. State, desired columns and rollout row are written in one transaction: there is
    no half-begun change.
    """
    with transaction.atomic():
        # No deadline here: that of the subject's own progress, or of its rollout's phases, applies.
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.APPLYING,
            action=audit_actions.CHANGE_APPLYING,
        )
        if change.pipeline is not None:
            pipeline_desired_state.apply(change.pipeline, change)
        else:
            _apply_to_deployment(change)


def _apply_to_deployment(change: ChangeRequest) -> None:
    deployment, revision = deployment_of(change), change.revision
    if change.kind == ChangeKind.RETIRE:
        desired_state.retire(deployment)
    elif change.kind == ChangeKind.STOP:
        stopping.begin(actor=SYSTEM, deployment=deployment, reason=change.comment)
    elif change.kind == ChangeKind.START:
        desired_state.start(deployment)
    elif change.kind == ChangeKind.SCALE:
        desired_state.scale(deployment, change.scale)
    elif revision is not None and change.kind == ChangeKind.DEPLOY:
        desired_state.serve_first(deployment, revision)
    else:
        _start_rollout(change)


def _start_rollout(change: ChangeRequest) -> None:
    deployment, at = deployment_of(change), clock.now()
    if deployment.stable_revision is None or change.revision is None:
        raise Conflict(f"{deployment} has no revision to replace.", code="not_serving")
    rollout = Rollout.objects.create(
        deployment=deployment,
        change=change,
        stable_revision=deployment.stable_revision,
        candidate_revision=change.revision,
        requested_by=change.requester,
        steps=change.steps,
        plan=change.plan,
        golden=change.golden,
        phase=RolloutPhase.PREPARING,
        created_at=at,
        deadline_at=at + timedelta(seconds=decide.PREPARE_SECONDS),
        next_check_at=at,
    )
    prometheus_readings.begin(rollout)
    trail.record(
        actor=SYSTEM,
        action=audit_actions.ROLLOUT_STARTED,
        obj=rollout,
        label=str(deployment),
        team_slug=deployment.team.slug,
        after={"phase": rollout.phase, "steps": rollout.steps},
    )
    message = f"r{change.revision.number} replaces r{deployment.stable_revision.number}"
    timeline.note_rollout(rollout=rollout, kind="started", message=message, actor=SYSTEM)
    rollout_notifications.notify_start(rollout, message=message)
    wake("deployments.advance_rollout", rollout.pk)
