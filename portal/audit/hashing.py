"""The hash of a link of the chain: SHA-256 of an event's content, its position and the hash before it.

Anyone can recompute it from an export: JSON with sorted keys, without spaces, in ASCII.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import Any, Final

from portal.audit.models import AuditEvent

# What the first link has in place of a hash before it.
GENESIS: Final = "0" * 64


def content_of(event: AuditEvent) -> dict[str, Any]:
    """Return the event as it is hashed and exported."""
    return {
        "id": event.pk,
        "at": event.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "action": event.action,
        "actor_id": event.actor_id,
        "actor_name": event.actor_name,
        "team_slug": event.team_slug,
        "object_type": event.object_type,
        "object_id": event.object_id,
        "object_label": event.object_label,
        "before": event.before,
        "after": event.after,
        "reason": event.reason,
        "evidence": event.evidence,
    }


def hash_link(*, position: int, previous: str, event: AuditEvent) -> str:
    """Hash a link. `event` must have been read from the database, which normalises its JSON values."""
    content = {"position": position, "previous": previous, "event": content_of(event)}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def canonical_json(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
