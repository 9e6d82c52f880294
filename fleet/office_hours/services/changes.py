"""Setting and ending the office hours of a node pool: what an approved fleet action does."""

from __future__ import annotations

from django.db import transaction

from fleet.models import FleetAction, PoolOfficeHours
from fleet.office_hours.domain.hours import OfficeHours
from fleet.office_hours.services import audit_actions
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock


def apply(*, action: FleetAction, hours: OfficeHours) -> PoolOfficeHours:
    """Set office hours. Repeating it changes nothing more. What the pool had in office hours before is kept."""
    at = clock.now()
    with transaction.atomic():
        row, _ = PoolOfficeHours.objects.get_or_create(
            cluster_id=action.cluster_id,
            target_kind=action.target_kind,
            target=action.target,
            defaults={"hours": hours.to_json(), "created_at": at},
        )
        if row.action_id == action.pk:
            return row
        before = row.hours if row.action_id else {}
        row.hours, row.action_id, row.is_ending = hours.to_json(), action.pk, False
        PoolOfficeHours.objects.filter(pk=row.pk).update(
            hours=row.hours, action=action.pk, is_ending=False, next_check_at=at
        )
        trail.record(
            actor=SYSTEM,
            action=audit_actions.SET,
            obj=row,
            label=f"{row} on {action.cluster.name}",
            before=before,
            after=row.hours,
        )
    return row


def end(*, row: PoolOfficeHours) -> None:
    """End office hours: the pool gets its size in office hours back, then they are deleted."""
    PoolOfficeHours.objects.filter(pk=row.pk, is_ending=False).update(
        is_ending=True, next_check_at=clock.now()
    )
