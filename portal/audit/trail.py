"""Write the audit trail in the transaction of the audited change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict, Unpack

from django.db import models, transaction

from portal.audit.actions import AuditAction
from portal.audit.models import AuditEvent
from portal.core import clock


class EventFields(TypedDict, total=False):
    """The optional fields of an audit event. `label` names the object; left out, it is the object's own text."""

    actor: Required[Any]
    action: Required[AuditAction]
    obj: Required[models.Model]
    label: str
    team_slug: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    reason: str
    evidence: str


def record(**fields: Unpack[EventFields]) -> AuditEvent:
    """Append one event. Must run inside the transaction of the change; raises RuntimeError outside one."""
    audit_event = event(**fields)
    _require_transaction(audit_event.action)
    audit_event.save()
    return audit_event


def append(events: Sequence[AuditEvent]) -> None:
    """Append many events of `event` in one statement, as `record` does for one."""
    if events:
        _require_transaction(events[0].action)
        AuditEvent.objects.bulk_create(events)


def event(**fields: Unpack[EventFields]) -> AuditEvent:
    """Return an unsaved event, to be written with `append`."""
    actor, obj = fields["actor"], fields["obj"]
    return AuditEvent(
        at=clock.now(),
        action=fields["action"].code,
        actor_id=getattr(actor, "pk", None),
        actor_name=getattr(actor, "username", "") or actor.name,
        team_slug=fields.get("team_slug", ""),
        object_type=obj._meta.model_name or "",
        object_id=str(obj.pk),
        object_label=fields.get("label") or str(obj),
        before=dict(fields.get("before") or {}),
        after=dict(fields.get("after") or {}),
        reason=fields.get("reason", ""),
        evidence=fields.get("evidence", ""),
    )


def _require_transaction(code: str) -> None:
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"audit of {code} outside a transaction")
