"""From an approved request to what the deployment wants. The cluster follows by reconciliation."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments.domain import rollouts
from deployments.domain.states import ChangeKind, ChangeState, RolloutPhase
from deployments.models import ChangeRequest, Rollout
from deployments.selectors import revisions
from deployments.services import (
    actions,
    approving,
    change_states,
    changes,
    desired,
    prometheus_readings,
    rollout_telling,
    telling,
    timeline,
)
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.wakeups import wake

_LEASE_SECONDS = 30
_RELATED = (
    "deployment__team",
    "deployment__cluster",
    "requester",
)


def sweep(*, limit: int = 50) -> int:
    """Begin what is approved and expire what nobody decided on."""
    due = leases.due(ChangeRequest, limit=limit)
    for change_id in due:
        apply_change(change_id=change_id)
    return len(due)


def apply_change(*, change_id: int) -> int | None:
    """Begin an approved request, or expire an old one. Returns the deployment to reconcile now."""
    lease = leases.claim(ChangeRequest, change_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return None
    change = ChangeRequest.objects.select_related(*_RELATED).get(pk=change_id)
    revisions.load_onto(change, change.deployment)
    try:
        begun = _step(change)
    except Conflict:
        # Someone moved it meanwhile; the row says what is next.
        begun = None
    # Not after other errors: the lease then ends by itself, and the row is due again at once.
    deadline_at = ChangeRequest.objects.values_list("deadline_at", flat=True).get(pk=change_id)
    kept = approving.next_look(change_id, deadline_at)
    is_open = change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED)
    leases.release(ChangeRequest, lease, next_check_at=kept if is_open else None)
    return begun


def _step(change: ChangeRequest) -> int | None:
    is_late = change.deadline_at is not None and clock.now() >= change.deadline_at
    if change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED) and is_late:
        changes.expire(change=change)
        return None
    if change.state == ChangeState.SUBMITTED:
        approving.refresh(change)
        approving.void_lapsed(change)
    if change.state != ChangeState.APPROVED:
        return None
    if not approving.is_approved_now(change):
        _void(change)
        return None
    _begin(change)
    return change.deployment_id


def _void(change: ChangeRequest) -> None:
    """Back to the approvers, with the evidence as it is now."""
    deadline_at = clock.now() + timedelta(seconds=change_states.SUBMITTED_SECONDS)
    with transaction.atomic():
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.SUBMITTED,
            action=actions.CHANGE_REOPENED,
            reason=approving.CHANGED,
            deadline_at=deadline_at,
        )
        approving.void(change, approving.CHANGED)
        approving.bind(change)
        ChangeRequest.objects.filter(pk=change.pk).update(
            evidence_hash=change.evidence_hash, required=change.required
        )
        telling.approval_wanted(change)


def _begin(change: ChangeRequest) -> None:
    """State, desired columns and rollout row in one transaction: there is no half-begun change."""
    deployment, revision = change.deployment, change.revision
    with transaction.atomic():
        # No deadline here: the deployment's own progress, or its rollout's phases, end it.
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.APPLYING,
            action=actions.CHANGE_APPLYING,
        )
        if change.kind == ChangeKind.RETIRE:
            desired.retire(deployment)
        elif change.kind == ChangeKind.START:
            desired.start(deployment)
        elif change.kind == ChangeKind.SCALE:
            desired.scale(deployment, change.scale)
        elif revision is not None and change.kind == ChangeKind.DEPLOY:
            desired.serve_first(deployment, revision)
        else:
            _start_rollout(change)


def _start_rollout(change: ChangeRequest) -> None:
    deployment, at = change.deployment, clock.now()
    if deployment.stable_revision is None or change.revision is None:
        raise Conflict(f"{deployment} serves nothing that could be replaced.", code="not_serving")
    rollout = Rollout.objects.create(
        deployment=deployment,
        change=change,
        stable_revision=deployment.stable_revision,
        candidate_revision=change.revision,
        requested_by=change.requester,
        steps=change.steps,
        plan=change.plan,
        phase=RolloutPhase.PREPARING,
        created_at=at,
        deadline_at=at + timedelta(seconds=rollouts.PREPARE_SECONDS),
        next_check_at=at,
    )
    prometheus_readings.begin(rollout)
    trail.record(
        actor=SYSTEM,
        action=actions.ROLLOUT_STARTED,
        obj=rollout,
        label=str(deployment),
        team_slug=deployment.team.slug,
        after={"phase": rollout.phase, "steps": rollout.steps},
    )
    words = f"r{change.revision.number} is to replace r{deployment.stable_revision.number}"
    timeline.note_rollout(rollout=rollout, kind="started", message=words, actor=SYSTEM)
    rollout_telling.started(rollout, words=words)
    wake("deployments.advance_rollout", rollout.pk)
