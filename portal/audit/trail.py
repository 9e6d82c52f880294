"""Write the audit trail in the transaction of the audited change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models, transaction

from portal.audit.actions import AuditAction
from portal.audit.models import AuditEvent
from portal.core import clock


def record(
    *,
    actor: Any,
    action: AuditAction,
    obj: models.Model,
    label: str,
    team_slug: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    evidence: str = "",
) -> AuditEvent:
    """Append one event. Must run inside the transaction of the change; raises RuntimeError outside one."""
    audit_event = event(
        actor=actor,
        action=action,
        obj=obj,
        label=label,
        team_slug=team_slug,
        before=before,
        after=after,
        reason=reason,
        evidence=evidence,
    )
    _require_transaction(action.code)
    audit_event.save()
    return audit_event


def append(events: Sequence[AuditEvent]) -> None:
    """As `record`, for many events of `event` in one statement."""
    if events:
        _require_transaction(events[0].action)
        AuditEvent.objects.bulk_create(events)


def event(
    *,
    actor: Any,
    action: AuditAction,
    obj: models.Model,
    label: str,
    team_slug: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    evidence: str = "",
) -> AuditEvent:
    """An unsaved event, to be written with `append`."""
    return AuditEvent(
        at=clock.now(),
        action=action.code,
        actor_id=getattr(actor, "pk", None),
        actor_name=getattr(actor, "username", "") or actor.name,
        team_slug=team_slug,
        object_type=obj._meta.model_name or "",
        object_id=str(obj.pk),
        object_label=label,
        before=dict(before or {}),
        after=dict(after or {}),
        reason=reason,
        evidence=evidence,
    )


def _require_transaction(code: str) -> None:
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"audit of {code} outside a transaction")
