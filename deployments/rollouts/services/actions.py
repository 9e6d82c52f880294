"""The actions of people on a rollout: promote, promote fully, pause, unpause, finish the watch, abort."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.guards.domain import evidence as guard_evidence
from deployments.guards.domain.evidence import Verdict
from deployments.models import Rollout
from deployments.rollouts.domain.observation import NO_TRAFFIC
from deployments.rollouts.selectors import rollouts as rollout_selectors
from deployments.rollouts.selectors import snapshots
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import analysis, evidence, transitions
from deployments.rollouts.services import promote as rollout_promote
from deployments.rollouts.services.analysis import Analysis
from deployments.states import ROLLOUT, RolloutPhase
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict, Invalid

_LONGEST_REASON = 500


def promote(*, actor: User, rollout_id: int, evidence_hash: str, comment: str = "") -> Rollout:
    """Promote to the next step, or after the last step to all requests. Raises Conflict when a
    verdict has changed since it was shown, when the step is not promotable yet, or when someone
    else was first.
    """
    snapshot = _decidable(actor, rollout_id, shown=evidence_hash)
    readiness = _same_evidence(snapshot, evidence_hash).readiness
    if not readiness.is_promotable:
        raise Conflict(f"Cannot be promoted yet: {readiness.message}.", code="not_promotable")
    return rollout_promote.one_step(
        actor=actor,
        snapshot=snapshot,
        evidence_hash=evidence_hash,
        comment=_clean(comment, field="comment"),
    )


def promote_fully(
    *, actor: User, rollout_id: int, evidence_hash: str, comment: str = ""
) -> Rollout:
    """Move all requests to the candidate at once, without the remaining steps. Refused while a guard fails."""
    snapshot = _decidable(actor, rollout_id, shown=evidence_hash)
    guards = _same_evidence(snapshot, evidence_hash).guards
    failing = [
        guard.guard for guard in guard_evidence.deciding(guards) if guard.verdict == Verdict.FAILED
    ]
    if failing:
        message = f"{', '.join(failing)} failed. Abort, or wait until it passes."
        raise Conflict(message, code="not_promotable")
    action = audit_actions.ROLLOUT_PROMOTED_FULLY
    return rollout_promote.to_all(
        actor=actor,
        snapshot=snapshot,
        evidence_hash=evidence_hash,
        action=action,
        comment=_clean(comment, field="comment"),
    )


def pause(*, actor: User, rollout_id: int, reason: str = "") -> Rollout:
    """Pause the rollout. The weight stays as it is, and nobody can promote until it is unpaused."""
    snapshot = _stoppable(actor, rollout_id)
    message = f"paused: {reason.strip()}" if reason.strip() else "paused"
    with transaction.atomic():
        transitions.move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.PAUSED,
            action=audit_actions.ROLLOUT_PAUSED,
            message=message,
            reason=_clean(reason),
        )
    return snapshot.rollout


def unpause(*, actor: User, rollout_id: int) -> Rollout:
    snapshot = _stoppable(actor, rollout_id)
    progress = snapshot.progress
    if progress.phase != RolloutPhase.PAUSED:
        raise Conflict(f"The rollout is {progress.phase}, not paused.", code="rollout_phase")
    has_begun = progress.desired != NO_TRAFFIC
    with transaction.atomic():
        transitions.move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.RUNNING if has_begun else RolloutPhase.PREPARING,
            action=audit_actions.ROLLOUT_UNPAUSED,
            message="unpaused",
        )
    return snapshot.rollout


def finish_watch(*, actor: User, rollout_id: int) -> Rollout:
    """End the watch after promotion: nothing rolls back automatically any more. Takes the permission
    to promote, because it gives up the safety of the plan.
    """
    rollout = rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)
    policy.require(actor, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    step_up.require(actor)
    if rollout.phase != RolloutPhase.WATCHING:
        message = f"The rollout is {rollout.phase}, not watched after its promotion."
        raise Conflict(message, code="rollout_phase")
    with transaction.atomic():
        transitions.end_watch(actor=actor, rollout=rollout)
    return rollout


def abort(*, actor: User, rollout_id: int, reason: str = "") -> Rollout:
    """Abort a rollout. It is legal from every phase that is not final, and wins over workers: a lost race is
    tried again.
    """
    for _ in range(5):
        snapshot = _stoppable(actor, rollout_id)
        rollout = snapshot.rollout
        if rollout.phase == RolloutPhase.ABORTING:
            return rollout
        if not ROLLOUT[RolloutPhase(rollout.phase)]:
            raise Conflict(
                f"The rollout is {rollout.phase}; to go back, request a roll back.",
                code="rollout_phase",
            )
        try:
            transitions.begin_abort(
                actor=actor,
                snapshot=snapshot,
                action=audit_actions.ROLLOUT_ABORTED,
                reason=_clean(reason),
            )
        except Conflict:
            continue
        return rollout
    raise Conflict("The rollout changed at the same time. Abort again.", code="rollout_moved")


def _decidable(actor: User, rollout_id: int, *, shown: str) -> RolloutSnapshot:
    rollout = rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)
    policy.require(actor, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    step_up.require(actor)
    evidence.refuse_if_promoted(rollout, shown=shown)
    if rollout.phase != RolloutPhase.RUNNING:
        fix = " Resume it first." if rollout.phase == RolloutPhase.PAUSED else ""
        raise Conflict(
            f"The rollout is {rollout.phase}, so there is nothing to promote.{fix}",
            code="rollout_phase",
        )
    return snapshots.snapshot_of(rollout)


def _stoppable(actor: User, rollout_id: int) -> RolloutSnapshot:
    rollout = rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)
    policy.require(actor, Action.STOP, rollout)
    return snapshots.snapshot_of(rollout)


def _same_evidence(snapshot: RolloutSnapshot, shown: str) -> Analysis:
    """Require that the evidence is the shown one. It is analysed again at the click, and stored, so that the
    page shows why it was refused.
    """
    now = analysis.analyse(snapshot)
    evidence.store(snapshot, now)
    if shown != now.digest:
        changes = evidence.describe_changes(snapshot.rollout, shown=shown, now=now.guards)
        what = f" ({changes})" if changes else ""
        raise Conflict(
            f"The evidence changed after you opened the page{what}. Review it, then decide.",
            code="evidence_changed",
        )
    return now


def _clean(reason: str, *, field: str = "reason") -> str:
    text = reason.strip()
    if len(text) > _LONGEST_REASON:
        message = f"The {field} is longer than {_LONGEST_REASON} characters. Shorten it."
        raise Invalid(message, fields={field: message})
    return text
