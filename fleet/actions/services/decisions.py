"""Deciding on fleet actions. An approval binds to what was shown."""

from __future__ import annotations

from django.db import transaction

from fleet.actions.domain.states import APPROVED_FOR, CANCELING_FOR, ActionState
from fleet.actions.selectors import actions
from fleet.actions.services import audit_actions, notifications, requests, transitions
from fleet.models import FleetAction
from portal.accounts import fleet_policy, policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid
from portal.core.wakeups import wake


def approve(*, actor: User, action_id: int, evidence_hash: str, comment: str = "") -> FleetAction:
    """Let it run. Raises Conflict when what it would do has changed since it was shown."""
    action = actions.get_action(action_id)
    fleet_policy.require_approver(actor, requester_id=action.requester_id)
    step_up.require(actor)
    _require_submitted(action)
    text = requests.clean(comment)
    _require_shown(action, evidence_hash)
    with transaction.atomic():
        _lock_shown(action, evidence_hash)
        transitions.move(
            actor=actor,
            action=action,
            to=ActionState.APPROVED,
            audited=audit_actions.APPROVED,
            reason=text,
            time_limit=APPROVED_FOR,
            columns=_decision(actor, text),
        )
        notifications.notify_decision(
            action, message=f"{actor.display_name} approved it. {text}".strip()
        )
        wake("fleet.advance_action", action.pk)
    return action


def reject(*, actor: User, action_id: int, comment: str = "") -> FleetAction:
    action = actions.get_action(action_id)
    fleet_policy.require_approver(actor, requester_id=action.requester_id)
    _require_submitted(action)
    text = requests.clean(comment)
    if not text:
        raise Invalid(
            "Give a reason, so the requester can fix it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        transitions.move(
            actor=actor,
            action=action,
            to=ActionState.REJECTED,
            audited=audit_actions.REJECTED,
            reason=text,
            columns=_decision(actor, text),
        )
        notifications.notify_decision(action, message=f"{actor.display_name} rejected it: {text}")
    return action


def withdraw(*, actor: User, action_id: int, reason: str = "") -> FleetAction:
    """Withdraw a request before it starts, by its requester or a platform admin."""
    action = _stoppable(actor, action_id)
    text = requests.clean(reason, field="reason")
    if action.state == ActionState.APPLYING:
        raise Conflict(f"The {action} is running. Cancel it.", code="action_state")
    transitions.move(
        actor=actor,
        action=action,
        to=ActionState.WITHDRAWN,
        audited=audit_actions.WITHDRAWN,
        reason=text,
    )
    return action


def cancel(*, actor: User, action_id: int, reason: str = "") -> FleetAction:
    """Stop a running one: what it changed on the node is restored, evicted pods stay where they are now."""
    action = _stoppable(actor, action_id)
    text = requests.clean(reason, field="reason")
    with transaction.atomic():
        transitions.move(
            actor=actor,
            action=action,
            to=ActionState.CANCELING,
            audited=audit_actions.CANCELING,
            reason=text or f"{actor.display_name} canceled it.",
            time_limit=CANCELING_FOR,
        )
        wake("fleet.advance_action", action.pk)
    return action


def expire(action: FleetAction) -> None:
    reason = "No decision was made in time. Request it again if it is still needed."
    if action.state == ActionState.APPROVED:
        reason = "It was approved and did not start within an hour. Request it again."
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            action=action,
            to=ActionState.EXPIRED,
            audited=audit_actions.EXPIRED,
            reason=reason,
        )
        notifications.notify_decision(action, message=reason)


def _stoppable(actor: User, action_id: int) -> FleetAction:
    action = actions.get_action(action_id)
    fleet_policy.require_whole_fleet(actor, Action.REQUEST_FLEET_ACTION)
    policy.require_entitled(actor, Action.REQUEST_FLEET_ACTION)
    if not actions.may_stop(actor, action):
        raise Forbidden(
            f"Only its requester or a platform admin can stop the {action}.", code="role_required"
        )
    return action


def _require_submitted(action: FleetAction) -> None:
    if action.state != ActionState.SUBMITTED:
        raise Conflict(
            f"The {action} is {action.state}; only a submitted request can be decided on.",
            code="action_state",
        )


def _require_shown(action: FleetAction, shown: str) -> None:
    """Require that the evidence is still what was shown. Call outside a transaction: what changed is stored, so
    that the page shows it next time. Raises Conflict.
    """
    evidence = requests.observe(action)
    current = requests.hash_evidence(action, evidence)
    if current != action.evidence_hash:
        FleetAction.objects.filter(pk=action.pk, state=ActionState.SUBMITTED).update(
            evidence=evidence.to_json(), evidence_hash=current
        )
    if shown != current:
        raise _changed()
    action.evidence_hash = current


def _lock_shown(action: FleetAction, shown: str) -> None:
    """Lock the action, and require that no other approver has stored other evidence since. Raises Conflict."""
    rows = FleetAction.objects.select_for_update(no_key=True, of=("self",)).order_by()
    stored = rows.filter(pk=action.pk).values_list("evidence_hash", flat=True).get()
    if stored != shown:
        raise _changed()


def _changed() -> Conflict:
    return Conflict(
        "The request changed after you opened it. Review it again, then decide.",
        code="evidence_changed",
    )


def _decision(actor: User, comment: str) -> dict[str, object]:
    return {"decided_by": actor, "decision_comment": comment, "decided_at": clock.now()}
