"""Letting traffic move on: to the next step, or all of it. Whoever decided is the actor."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.models import Rollout
from deployments.plans.domain import rollout_plan
from deployments.registry.services import aliases
from deployments.rollouts.services import transitions
from deployments.serving.services import desired_state, timeline
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Actor
from portal.audit.actions import AuditAction
from portal.core.errors import DomainError


def one_step(
    *, actor: Actor, rollout: Rollout, evidence_hash: str, words: str = "promoted"
) -> Rollout:
    """Raises Conflict when the evidence is no longer the one decided on, or someone was first."""
    if rollout.step_index + 1 == len(rollout.steps):
        return to_all(
            actor=actor,
            rollout=rollout,
            evidence_hash=evidence_hash,
            action=audit_actions.ROLLOUT_PROMOTED,
            words=f"{words} to all requests",
        )
    index = rollout.step_index + 1
    weight = rollout.steps[index]["weight"]
    before = rollout.steps[rollout.step_index]["weight"]
    is_shadow = rollout_plan.is_shadow(rollout.plan)
    mirrored = " mirrored" if is_shadow else ""
    with transaction.atomic():
        transitions.move(
            actor=actor,
            rollout=rollout,
            to=RolloutPhase.RUNNING,
            action=audit_actions.ROLLOUT_PROMOTED,
            words=f"{words} {before} → {weight}%{mirrored}",
            step_index=index,
            evidence=evidence_hash,
        )
        deployment = transitions.reload(rollout)
        if is_shadow:
            desired_state.set_weight(deployment, 0, mirror=weight)
        else:
            desired_state.set_weight(deployment, weight)
    return rollout


def to_all(
    *,
    actor: Actor,
    rollout: Rollout,
    evidence_hash: str,
    action: AuditAction,
    words: str = "promoted to all requests",
) -> Rollout:
    with transaction.atomic():
        transitions.move(
            actor=actor,
            rollout=rollout,
            to=RolloutPhase.PROMOTING,
            action=action,
            words=words,
            evidence=evidence_hash,
        )
        deployment = transitions.reload(rollout)
        if deployment.candidate_weight != 100:
            desired_state.set_weight(deployment, 100)
    return rollout


def move_alias(rollout: Rollout) -> None:
    """In the name of the person who approved the plan, so that a protected alias needs a lead.

    A refusal does not hold up the rollout: it is written where people look.
    """
    name = rollout_plan.from_json(rollout.plan).move_alias
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
        words = f"{version.model.name}@{name} now points to {version.label}"
    except DomainError as error:
        words = f"{version.model.name}@{name} was not moved: {error.message}"
    timeline.note_rollout(rollout=rollout, kind="alias", message=words, actor=SYSTEM)


def _approver_of(rollout: Rollout) -> User:
    approvals = rollout.change.approvals.filter(is_approved=True, void_reason="")
    last = approvals.select_related("user").order_by("-at").first()
    return last.user if last else rollout.requested_by
