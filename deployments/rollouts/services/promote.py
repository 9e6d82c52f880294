"""Move traffic to the next step, or all of it. The actor is who decided."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.models import Rollout
from deployments.registry.services import aliases
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import transitions
from deployments.serving.services import desired_state, timeline
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Actor
from portal.audit.actions import AuditAction
from portal.core.errors import DomainError


def one_step(
    *, actor: Actor, snapshot: RolloutSnapshot, evidence_hash: str, message: str = "promoted"
) -> Rollout:
    """Raises Conflict when the evidence is no longer the one decided on, or someone was first."""
    rollout, plan, progress = snapshot.rollout, snapshot.plan, snapshot.progress
    if progress.is_last_step:
        return to_all(
            actor=actor,
            snapshot=snapshot,
            evidence_hash=evidence_hash,
            action=audit_actions.ROLLOUT_PROMOTED,
            message=f"{message} to all requests",
        )
    weight = progress.next_weight
    mirrored = " mirrored" if plan.is_shadow else ""
    with transaction.atomic():
        transitions.move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.RUNNING,
            action=audit_actions.ROLLOUT_PROMOTED,
            message=f"{message} {progress.step.weight} → {weight}%{mirrored}",
            step_index=progress.step_index + 1,
            evidence=evidence_hash,
        )
        deployment = transitions.reload(rollout)
        if plan.is_shadow:
            desired_state.set_weight(deployment, 0, mirror=weight)
        else:
            desired_state.set_weight(deployment, weight)
    return rollout


def to_all(
    *,
    actor: Actor,
    snapshot: RolloutSnapshot,
    evidence_hash: str,
    action: AuditAction,
    message: str = "promoted to all requests",
) -> Rollout:
    rollout = snapshot.rollout
    with transaction.atomic():
        transitions.move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.PROMOTING,
            action=action,
            message=message,
            evidence=evidence_hash,
        )
        deployment = transitions.reload(rollout)
        if deployment.candidate_weight != 100:
            desired_state.set_weight(deployment, 100)
    return rollout


def move_alias(snapshot: RolloutSnapshot) -> None:
    """Move the alias on behalf of the person who approved the plan, so that a protected alias needs
    a lead.

    A refusal does not stop the rollout: it is written to the timeline.
    """
    rollout, name = snapshot.rollout, snapshot.plan.move_alias
    if not name:
        return
    version = rollout.candidate_revision.version
    try:
        aliases.move(
            actor=_approver_of(rollout),
            team_slug=version.model.team.slug,
            model_name=version.model.name,
            alias=name,
            number=version.number,
        )
        message = f"{version.model.name}@{name} now points to {version.label}"
    except DomainError as error:
        message = f"{version.model.name}@{name} was not moved: {error.message}"
    timeline.note_rollout(rollout=rollout, kind="alias", message=message, actor=SYSTEM)


def _approver_of(rollout: Rollout) -> User:
    approvals = rollout.change.approvals.filter(is_approved=True, void_reason="")
    last = approvals.select_related("user").order_by("-at").first()
    return last.user if last else rollout.requested_by
