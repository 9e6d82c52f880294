"""A promotion that is decided and waits for replicas of the candidate: its step stays until then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db import transaction

from deployments.models import Rollout
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import transitions
from deployments.serving.services import desired_state
from deployments.states import RolloutPhase
from portal.accounts.policy import Actor
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.wakeups import wake


def begin(
    *,
    actor: Actor,
    snapshot: RolloutSnapshot,
    step_index: int,
    action: AuditAction,
    message: str,
    evidence: str,
    comment: str = "",
) -> Rollout:
    """Begin a promotion that waits for replicas of the candidate. Raises Conflict as `transitions.move` does."""
    rollout = snapshot.rollout
    with transaction.atomic():
        _store_pending_promotion(snapshot, step_index, message, evidence)
        transitions.announce(
            actor,
            rollout,
            action,
            before={"phase": rollout.phase, "step": rollout.step_index},
            message=message,
            reason=comment,
        )
        deployment = transitions.reload(rollout)
        desired_state.set_candidate_replicas(deployment, replicas_for(snapshot, step_index))
    wake("deployments.advance_rollout", rollout.pk)
    return rollout


def replicas_for(snapshot: RolloutSnapshot, step_index: int) -> int | None:
    """Return the candidate's replicas at a step for the desired state. None means as many as approved."""
    count = snapshot.progress.replicas_at(step_index)
    return None if count >= snapshot.progress.approved_replicas else count


def _store_pending_promotion(
    snapshot: RolloutSnapshot, step_index: int, message: str, evidence: str
) -> None:
    rollout, at = snapshot.rollout, clock.now()
    rows = Rollout.objects.filter(
        pk=rollout.pk,
        phase=RolloutPhase.RUNNING,
        step_index=rollout.step_index,
        promoted_to=rollout.promoted_to,
        evidence_hash=evidence,
    )
    shown = StepObservation.from_json(rollout.observed)
    waits = replace(snapshot.progress, promoted_to=step_index).describe_growth()
    # This step is promoted already; the next can be promoted once the replicas are ready.
    observed = replace(
        shown, is_promotable=False, was_promotable=shown.has_passed, reason=waits
    ).to_json()
    written = rows.update(
        promoted_to=step_index,
        observed=observed,
        phase_reason=message,
        deadline_at=at + timedelta(seconds=decide.PREPARE_SECONDS),
        next_check_at=at,
    )
    if not written:
        raise Conflict(transitions.MOVED, code="rollout_moved")
    rollout.promoted_to, rollout.phase_reason, rollout.observed = step_index, message, observed
