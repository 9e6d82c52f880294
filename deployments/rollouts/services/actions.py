"""What people do with a rollout: promote, promote fully, pause, unpause, abort."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.models import Rollout
from deployments.rollouts.domain.observation import NOTHING
from deployments.rollouts.selectors import rollouts as rollout_selectors
from deployments.rollouts.services import analysis, evidence, transitions
from deployments.rollouts.services import promote as rollout_promote
from deployments.rollouts.services.reconcile import plan_of
from deployments.states import ROLLOUT, RolloutPhase
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict, Invalid

_LONGEST_REASON = 500


def promote(*, actor: User, rollout_id: int, evidence_hash: str) -> Rollout:
    """To the next step, or after the last one to all requests. Raises Conflict when a verdict has
    turned since it was shown, when the step is not promotable yet, or when someone else was first.
    """
    rollout = _decidable(actor, rollout_id)
    found = _same_evidence(rollout, evidence_hash)
    if not found.readiness.is_promotable:
        raise Conflict(f"Cannot be promoted yet: {found.readiness.words}.", code="not_promotable")
    return rollout_promote.one_step(actor=actor, rollout=rollout, evidence_hash=evidence_hash)


def promote_fully(*, actor: User, rollout_id: int, evidence_hash: str) -> Rollout:
    """All requests at once, without the remaining steps. Refused while a guard fails."""
    rollout = _decidable(actor, rollout_id)
    found = _same_evidence(rollout, evidence_hash)
    failing = [guard.guard for guard in found.guards if guard.verdict == "fail"]
    if failing:
        words = f"{', '.join(failing)} failed. Abort, or wait until it passes."
        raise Conflict(words, code="not_promotable")
    action = audit_actions.ROLLOUT_PROMOTED_FULLY
    return rollout_promote.to_all(
        actor=actor, rollout=rollout, evidence_hash=evidence_hash, action=action
    )


def pause(*, actor: User, rollout_id: int, reason: str = "") -> Rollout:
    """The weight stays as it is, and nobody can promote until it is unpaused."""
    rollout = _stoppable(actor, rollout_id)
    words = f"paused: {reason.strip()}" if reason.strip() else "paused"
    with transaction.atomic():
        transitions.move(
            actor=actor,
            rollout=rollout,
            to=RolloutPhase.PAUSED,
            action=audit_actions.ROLLOUT_PAUSED,
            words=words,
            reason=_clean(reason),
        )
    return rollout


def unpause(*, actor: User, rollout_id: int) -> Rollout:
    rollout = _stoppable(actor, rollout_id)
    if rollout.phase != RolloutPhase.PAUSED:
        raise Conflict(f"The rollout is {rollout.phase}, not paused.", code="rollout_phase")
    has_begun = plan_of(rollout).desired != NOTHING
    with transaction.atomic():
        transitions.move(
            actor=actor,
            rollout=rollout,
            to=RolloutPhase.RUNNING if has_begun else RolloutPhase.PREPARING,
            action=audit_actions.ROLLOUT_UNPAUSED,
            words="unpaused",
        )
    return rollout


def abort(*, actor: User, rollout_id: int, reason: str = "") -> Rollout:
    """Legal from every phase that is not final, and wins over workers: a lost race is tried again."""
    for _ in range(5):
        rollout = _stoppable(actor, rollout_id)
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
                rollout=rollout,
                action=audit_actions.ROLLOUT_ABORTED,
                reason=_clean(reason),
            )
        except Conflict:
            continue
        return rollout
    raise Conflict("The rollout changed at the same time. Abort again.", code="rollout_moved")


def _decidable(actor: User, rollout_id: int) -> Rollout:
    rollout = _visible(actor, rollout_id)
    policy.require(actor, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    if rollout.phase != RolloutPhase.RUNNING:
        fix = " Resume it first." if rollout.phase == RolloutPhase.PAUSED else ""
        raise Conflict(
            f"The rollout is {rollout.phase}, so there is nothing to promote.{fix}",
            code="rollout_phase",
        )
    return rollout


def _stoppable(actor: User, rollout_id: int) -> Rollout:
    rollout = _visible(actor, rollout_id)
    policy.require(actor, Action.STOP, rollout)
    return rollout


def _visible(actor: User, rollout_id: int) -> Rollout:
    return rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)


def _same_evidence(rollout: Rollout, shown: str) -> analysis.Analysis:
    """Judged anew at the moment of the click, and stored, so that the page shows why it was refused."""
    found = analysis.analyse(rollout, plan_of(rollout))
    evidence.store(rollout, found)
    if shown != found.digest:
        turned = evidence.changed_words(rollout, shown=shown, now=found.guards)
        what = f" ({turned})" if turned else ""
        raise Conflict(
            f"The evidence changed after you opened the page{what}. Review it, then decide.",
            code="evidence_changed",
        )
    return found


def _clean(reason: str) -> str:
    text = reason.strip()
    if len(text) > _LONGEST_REASON:
        raise Invalid(
            f"The reason is longer than {_LONGEST_REASON} characters.",
            fields={"reason": "too long"},
        )
    return text
