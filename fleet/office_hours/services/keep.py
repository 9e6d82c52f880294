"""Set the size of node pools when their office hours begin and end. A worker may die at any line."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from fleet.kube.domain.errors import ClusterError, ObjectNotFound, Throttled
from fleet.models import PoolOfficeHours
from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.decisions import Decision, Event, Move, PoolState, decide
from fleet.office_hours.domain.hours import OfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.services import audit_actions, live_sizes
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.notifications import events, services

logger = logging.getLogger(__name__)

_LEASE_SECONDS: Final = 120
_SOON: Final = timedelta(seconds=10)
# How often a pool is read in between, so that a manual change is shown.
_POLL_INTERVAL: Final = timedelta(minutes=5)
_LONGEST_WAIT_SECONDS: Final = 300
# A problem that lasts this long is notified to the platform's channels, once.
_NOTIFY_AFTER: Final = timedelta(minutes=10)
_AUDITED: Final = {
    Event.OPENED: audit_actions.OPENED,
    Event.CLOSED: audit_actions.CLOSED,
    Event.CHANGED: audit_actions.CHANGED,
    Event.ENDED: audit_actions.ENDED,
}


def sweep(*, limit: int = 50) -> int:
    """Make one pass over each due pool. Returns their number."""
    due = leases.due(PoolOfficeHours, limit=limit)
    for pk in due:
        reconcile(pk=pk)
    return len(due)


def reconcile(*, pk: int) -> None:
    """Observe, store the intent or make one effect, record. Nothing while another worker holds it."""
    lease = leases.claim(PoolOfficeHours, pk, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    row = PoolOfficeHours.objects.select_related("cluster").get(pk=pk)
    try:
        next_check_at = _step(row, lease)
    except ClusterError as error:
        _note_problem(row, lease, str(error))
        least = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
        leases.back_off(
            PoolOfficeHours,
            lease,
            base_seconds=10,
            cap_seconds=_LONGEST_WAIT_SECONDS,
            least_seconds=least,
        )
        return
    except Conflict:
        # Another worker has the row and continues.
        return
    leases.release(PoolOfficeHours, lease, next_check_at=next_check_at)


def _step(row: PoolOfficeHours, lease: Lease) -> datetime | None:
    at = clock.now()
    try:
        live = live_sizes.read(cluster_id=row.cluster_id, kind=row.target_kind, name=row.target)
    except ObjectNotFound:
        if not row.is_ending:
            raise
        # There is nothing to give its size back to.
        _record(row, lease, Decision(build_state(row), event=Event.ENDED), at)
        return None
    if live.is_busy:
        return at + _SOON
    hours = OfficeHours.from_json(row.hours)
    decision = decide(hours, build_state(row), live.size, at, is_ending=row.is_ending)
    if decision.effect is not None:
        if not leases.is_held(PoolOfficeHours, lease):
            raise leases.build_lost_error(row)
        token = f"slipway-hours-{row.pk}-{decision.effect.token}"
        live_sizes.write(
            cluster_id=row.cluster_id,
            kind=row.target_kind,
            name=row.target,
            size=decision.effect.after,
            token=token,
        )
    _record(row, lease, decision, at)
    if decision.event is Event.ENDED:
        return None
    return _next_check(row, hours, decision, at)


def _next_check(
    row: PoolOfficeHours, hours: OfficeHours, decision: Decision, at: datetime
) -> datetime:
    if decision.effect is not None:
        return at + _SOON
    if decision.is_waiting and decision.state.move != build_state(row).move:
        # The intent was stored; its effect is next.
        return at
    if decision.is_waiting:
        return at + _SOON
    if row.is_ending or decision.event in (Event.OPENED, Event.CLOSED):
        return at
    return min(at + _POLL_INTERVAL, hours.next_edge(at))


def _record(row: PoolOfficeHours, lease: Lease, decision: Decision, at: datetime) -> None:
    """Record the outcome of a pass. Raises Conflict if the lease was lost meanwhile."""
    held = PoolOfficeHours.objects.filter(
        pk=row.pk, lease_token=lease.token, lease_until__gt=clock.now()
    )
    with transaction.atomic():
        if decision.event is not None:
            _audit(row, decision)
        if decision.event is Event.ENDED:
            changed, _ = held.delete()
        else:
            changed = held.update(**_columns(row, decision, at))
        if not changed:
            raise leases.build_lost_error(row)


def _columns(row: PoolOfficeHours, decision: Decision, at: datetime) -> dict[str, Any]:
    state = decision.state
    columns: dict[str, Any] = {
        "is_open": state.is_open,
        "open_size": state.open_size,
        "closed_size": state.closed_size,
        "last_size": state.last_size,
        "move": state.move.to_json() if state.move else None,
        "problem": "",
        "problem_at": None,
        "is_problem_told": False,
    }
    if decision.event in (Event.OPENED, Event.CLOSED):
        columns |= {"edge_at": at, "changed_from": None, "changed_at": None}
    elif decision.event is Event.CHANGED:
        before = build_state(row).move
        was = before.after if before else row.last_size
        columns |= {"changed_from": row.changed_from or was, "changed_at": at}
    return columns


def _audit(row: PoolOfficeHours, decision: Decision) -> None:
    event, state = decision.event, decision.state
    if event is None:
        return
    trail.record(
        actor=SYSTEM,
        action=_AUDITED[event],
        obj=row,
        label=f"{row} on {row.cluster.name}",
        before={"size": sizes.describe(row.move["before"] if row.move else row.last_size)},
        after={"size": sizes.describe(state.last_size)},
    )


def _note_problem(row: PoolOfficeHours, lease: Lease, message: str) -> None:
    at = clock.now()
    since = row.problem_at or at
    is_told = row.is_problem_told or at - since >= _NOTIFY_AFTER
    logger.warning("office hours=%s: %s", row.pk, message)
    with transaction.atomic():
        PoolOfficeHours.objects.filter(pk=row.pk, lease_token=lease.token).update(
            problem=message, problem_at=since, is_problem_told=is_told
        )
        if is_told and not row.is_problem_told:
            services.notify_platform(
                event=events.FLEET_FINISHED.code,
                subject=f"Office hours of {row.target} on {row.cluster.name} cannot be kept",
                message=message,
                path=reverse(
                    "office-hours",
                    args=(row.cluster_id, PoolKind(row.target_kind).slug, row.target),
                ),
                people=[row.action.requester_id] if row.action else [],
            )


def build_state(row: PoolOfficeHours) -> PoolState:
    return PoolState(
        is_open=row.is_open,
        open_size=row.open_size,
        closed_size=row.closed_size,
        last_size=row.last_size,
        move=Move.from_json(row.move) if row.move else None,
    )
