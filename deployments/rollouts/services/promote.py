"""Move traffic to the next step, or all of it. The actor is who decided."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.models import Rollout
from deployments.registry.services import aliases
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import growth, transitions
from deployments.serving.domain.alias_moves import AliasMove
from deployments.serving.selectors import alias_returns
from deployments.serving.services import desired_state, timeline
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Actor
from portal.audit.actions import AuditAction
from portal.core.errors import DomainError


def one_step(
    *,
    actor: Actor,
    snapshot: RolloutSnapshot,
    evidence_hash: str,
    message: str = "promoted",
    comment: str = "",
) -> Rollout:
    """Promote to the next step, now or once the candidate has its replicas. The comment is kept beside the
    message. Raises Conflict when the evidence is no longer the one decided on, or someone was first.
    """
    progress = snapshot.progress
    action = audit_actions.ROLLOUT_PROMOTED
    if progress.is_last_step:
        return to_all(
            actor=actor,
            snapshot=snapshot,
            evidence_hash=evidence_hash,
            action=action,
            message=f"{message} to all requests",
            comment=comment,
        )
    text = _join(f"{message} {_describe_step(snapshot)}", comment)
    index = progress.step_index + 1
    if progress.grows_before(index):
        return _grow(actor, snapshot, index, action, text, evidence_hash, comment)
    return _to_next(actor, snapshot, action, text, evidence_hash, comment)


def to_all(
    *,
    actor: Actor,
    snapshot: RolloutSnapshot,
    evidence_hash: str,
    action: AuditAction,
    message: str = "promoted to all requests",
    comment: str = "",
) -> Rollout:
    index, text = len(snapshot.plan.steps), _join(message, comment)
    if snapshot.progress.grows_before(index):
        return _grow(actor, snapshot, index, action, text, evidence_hash, comment)
    return _to_all(actor, snapshot, action, text, evidence_hash, comment)


def advance(snapshot: RolloutSnapshot, *, message: str) -> Rollout:
    """Carry out the promotion that waited for the candidate's replicas. It was decided, and audited, before."""
    action, progress = audit_actions.ROLLOUT_MOVED, snapshot.progress
    if progress.promoted_to == progress.step_index + 1 and not progress.is_last_step:
        text = f"{message}: {_describe_step(snapshot)}"
        return _to_next(SYSTEM, snapshot, action, text, None)
    return _to_all(SYSTEM, snapshot, action, f"{message}: all requests go to it", None)


def _join(message: str, comment: str) -> str:
    return f"{message}: {comment}" if comment else message


def _describe_step(snapshot: RolloutSnapshot) -> str:
    progress = snapshot.progress
    mirrored = " mirrored" if snapshot.plan.is_shadow else ""
    return f"{progress.step.weight} → {progress.next_weight}%{mirrored}"


def _grow(
    actor: Actor,
    snapshot: RolloutSnapshot,
    index: int,
    action: AuditAction,
    message: str,
    evidence_hash: str,
    comment: str,
) -> Rollout:
    return growth.begin(
        actor=actor,
        snapshot=snapshot,
        step_index=index,
        action=action,
        message=f"{message}, once its replicas are ready",
        evidence=evidence_hash,
        comment=comment,
    )


def _to_next(
    actor: Actor,
    snapshot: RolloutSnapshot,
    action: AuditAction,
    message: str,
    evidence_hash: str | None,
    comment: str = "",
) -> Rollout:
    rollout, weight = snapshot.rollout, snapshot.progress.next_weight
    with transaction.atomic():
        transitions.move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.RUNNING,
            action=action,
            message=message,
            step_index=snapshot.progress.step_index + 1,
            evidence=evidence_hash,
            comment=comment,
        )
        deployment = transitions.reload(rollout)
        if snapshot.plan.is_shadow:
            desired_state.set_weight(deployment, 0, mirror=weight)
        else:
            desired_state.set_weight(deployment, weight)
    return rollout


def _to_all(
    actor: Actor,
    snapshot: RolloutSnapshot,
    action: AuditAction,
    message: str,
    evidence_hash: str | None,
    comment: str = "",
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
            comment=comment,
        )
        deployment = transitions.reload(rollout)
        if deployment.candidate_weight != 100:
            desired_state.set_weight(deployment, 100)
    return rollout


def move_aliases(snapshot: RolloutSnapshot) -> None:
    """Move the alias of the plan, or back what going forward moved. Call inside the transaction that ends
    the rollout.
    """
    rollout = snapshot.rollout
    moves = _move_back(rollout)
    if snapshot.plan.move_alias:
        moves += _move_forward(rollout, snapshot.plan.move_alias)
    if moves:
        stored = [move.to_json() for move in moves]
        Rollout.objects.filter(pk=rollout.pk).update(alias_moves=stored)


def _move_back(rollout: Rollout) -> list[AliasMove]:
    moves: list[AliasMove] = []
    for item in alias_returns.list_for_change(rollout.change):
        message = item.description
        if item.target is not None and not item.problem:
            source, target = item.source, item.target
            if aliases.move_back(actor=SYSTEM, alias=item.alias, source=source, target=target):
                moves.append(AliasMove(source.model_id, item.alias, source.pk, target.pk))
                message = f"{item.label} points to {target.label} again"
            else:
                message = f"{item.label} is not moved back: someone moved it at the same time."
        timeline.note_rollout(rollout=rollout, kind="alias", message=message, actor=SYSTEM)
    return moves


def _move_forward(rollout: Rollout, name: str) -> list[AliasMove]:
    """Move the alias on behalf of the person who approved the plan, so that a protected alias needs a lead.

    A refusal does not stop the rollout: it is written to the timeline.
    """
    version = rollout.candidate_revision.version
    before = aliases.version_of(version.model, name)
    moves: list[AliasMove] = []
    try:
        aliases.move(
            actor=_approver_of(rollout),
            team_slug=version.model.team.slug,
            model_name=version.model.name,
            alias=name,
            number=version.number,
        )
        message = f"{version.model.name}@{name} now points to {version.label}"
        if before != version.pk:
            moves.append(AliasMove(version.model_id, name, before, version.pk))
    except DomainError as error:
        message = f"{version.model.name}@{name} was not moved: {error.message}"
    timeline.note_rollout(rollout=rollout, kind="alias", message=message, actor=SYSTEM)
    return moves


def _approver_of(rollout: Rollout) -> User:
    approvals = rollout.change.approvals.filter(is_approved=True, void_reason="")
    last = approvals.select_related("user").order_by("-at").first()
    return last.user if last else rollout.requested_by
