"""Reads that are events themselves: exports, and what docs/audit.md lists."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import models, transaction

from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.audit.models import AuditEvent
from portal.core import clock

TRAIL_EXPORTED: Final = register("audit.exported", "exported the audit trail of")
LEDGER_EXPORTED: Final = register("ledger.exported", "exported the cost ledger of")
# Somebody who reads page after page, or polls, makes one event in this time.
_ONCE_IN: Final = timedelta(hours=1)


def record(
    *, actor: Any, action: AuditAction, obj: models.Model, label: str, team_slug: str = ""
) -> None:
    """Append the event before the first byte is given out, unless the last hour has the same."""
    same = AuditEvent.objects.filter(
        at__gt=clock.now() - _ONCE_IN,
        action=action.code,
        actor_id=getattr(actor, "pk", None),
        object_type=obj._meta.model_name or "",
        object_id=str(obj.pk),
        object_label=label[:200],
    )
    with transaction.atomic():
        if not same.exists():
            trail.record(
                actor=actor, action=action, obj=obj, label=label[:200], team_slug=team_slug
            )
