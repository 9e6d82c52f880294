"""Carry out approved fleet actions. A worker may die at any line: each pass reads the cluster again."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from fleet.actions.domain.outcomes import Outcome, Result
from fleet.actions.domain.states import RUNNING, WAITING, ActionState, is_final
from fleet.actions.selectors import actions
from fleet.actions.services import (
    audit_actions,
    decisions,
    handlers,
    notifications,
    transitions,
)
from fleet.kube.domain.errors import ClusterError, Throttled
from fleet.models import FleetAction
from portal.accounts.policy import SYSTEM
from portal.audit.actions import AuditAction
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease

logger = logging.getLogger(__name__)

# Twenty evictions of a slow cluster fit in it.
_LEASE_SECONDS: Final = 360


def sweep(*, limit: int = 50) -> int:
    """Make one pass over each due action. Returns their number."""
    due = leases.due(FleetAction, limit=limit)
    for action_id in due:
        advance(action_id=action_id)
    return len(due)


def advance(*, action_id: int) -> None:
    """Observe, make one effect, record. Nothing while another worker holds it."""
    lease = leases.claim(FleetAction, action_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    action = actions.get_action(action_id)
    try:
        next_check_at = _step(action, lease)
    except ClusterError as error:
        _note(action, lease, f"The cluster could not be changed: {error}")
        least = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
        leases.back_off(FleetAction, lease, least_seconds=least)
        return
    except Conflict:
        # Somebody moved it meanwhile, and the row says what is next.
        next_check_at = clock.now()
    leases.release(FleetAction, lease, next_check_at=next_check_at)


def _step(action: FleetAction, lease: Lease) -> datetime | None:
    at = clock.now()
    is_late = action.deadline_at is not None and at >= action.deadline_at
    if action.state in WAITING and is_late:
        decisions.expire(action)
    elif action.state in RUNNING and is_late:
        _give_up(action)
    elif action.state == ActionState.APPROVED:
        _begin(action)
    elif action.state == ActionState.APPLYING:
        return _record(
            action, lease, handlers.get_handler(action).advance(action), ActionState.DONE
        )
    elif action.state == ActionState.CANCELING:
        return _record(
            action, lease, handlers.get_handler(action).revert(action), ActionState.CANCELED
        )
    if action.state == ActionState.SUBMITTED:
        return action.deadline_at
    return None if is_final(action.state) else at


def _begin(action: FleetAction) -> None:
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            action=action,
            to=ActionState.APPLYING,
            audited=audit_actions.STARTED,
            time_limit=handlers.get_handler(action).time_limit(action),
            columns={"started_at": clock.now()},
        )
        notifications.notify_start(action)


def _record(
    action: FleetAction, lease: Lease, outcome: Outcome, end: ActionState
) -> datetime | None:
    """Record the outcome of a pass. Raises if the lease was lost meanwhile."""
    if not leases.is_held(FleetAction, lease):
        raise leases.build_lost_error(action)
    kept = outcome.progress
    columns = {} if kept is None else {"progress": kept.to_json()}
    if outcome.result is Result.GOES_ON:
        FleetAction.objects.filter(pk=action.pk, lease_token=lease.token).update(
            **columns, **_message(action, outcome.message)
        )
        return clock.now() + timedelta(seconds=outcome.after_seconds)
    to, audited = _end(outcome, end)
    reason = outcome.message
    if end is ActionState.CANCELED and action.state_reason:
        reason = f"{action.state_reason} {reason}"
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM, action=action, to=to, audited=audited, reason=reason, columns=columns
        )
        notifications.notify_result(action, message=reason)
    return None


def _end(outcome: Outcome, end: ActionState) -> tuple[ActionState, AuditAction]:
    if outcome.result is Result.FAILED:
        return ActionState.FAILED, audit_actions.FAILED
    is_canceled = end is ActionState.CANCELED
    return end, audit_actions.CANCELED if is_canceled else audit_actions.DONE


def _message(action: FleetAction, message: str) -> dict[str, str]:
    """The reason of a cancellation stays while it is reverted."""
    return {} if action.state == ActionState.CANCELING else {"state_reason": message}


def _note(action: FleetAction, lease: Lease, message: str) -> None:
    logger.warning("fleet action=%s: %s", action.pk, message)
    FleetAction.objects.filter(
        pk=action.pk, lease_token=lease.token, state=ActionState.APPLYING
    ).update(state_reason=message)


def _give_up(action: FleetAction) -> None:
    reason = f"It was not done by its deadline. {action.state_reason}".strip()
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            action=action,
            to=ActionState.FAILED,
            audited=audit_actions.FAILED,
            reason=reason,
        )
        notifications.notify_result(action, message=reason)
