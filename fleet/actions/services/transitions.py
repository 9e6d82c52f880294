"""How a fleet action moves between its states: the only writer of `FleetAction.state`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.actions.domain.states import ACTION, ActionState
from fleet.models import FleetAction
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict


def move(
    *,
    actor: Actor,
    action: FleetAction,
    to: ActionState,
    audited: AuditAction,
    reason: str = "",
    time_limit: timedelta | None = None,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Compare-and-swap on the state that `action` was read with; raises Conflict when it moved on. The row
    is due at once, or never again when the state is final.
    """
    old, at = ActionState(action.state), clock.now()
    if to not in ACTION[old]:
        raise Conflict(f"The {action} is {old}, so it cannot become {to}.", code="action_state")
    changed: dict[str, Any] = {
        **(columns or {}),
        "state": to,
        "state_reason": reason,
        "deadline_at": _after(at, time_limit),
        "next_check_at": at if ACTION[to] else None,
        "finished_at": None if ACTION[to] else at,
    }
    with transaction.atomic():
        rows = FleetAction.objects.filter(pk=action.pk, state=old)
        if not rows.update(**changed):
            raise Conflict(
                f"The {action} changed at the same time. Reload the page.", code="action_state"
            )
        record(actor, action, audited, before=old, after=to, reason=reason)
    for name, value in changed.items():
        setattr(action, name, value)


def record(
    actor: Actor,
    action: FleetAction,
    audited: AuditAction,
    *,
    before: str = "",
    after: str = "",
    reason: str = "",
) -> None:
    trail.record(
        actor=actor,
        action=audited,
        obj=action,
        label=f"{action} on {action.cluster.name}",
        before={"state": before} if before else {},
        after={"state": after, "target": action.target, **action.parameters},
        reason=reason,
        evidence=action.evidence_hash,
    )


def _after(at: datetime, time_limit: timedelta | None) -> datetime | None:
    return None if time_limit is None else at + time_limit
