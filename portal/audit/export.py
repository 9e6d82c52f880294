"""Chained events for other systems, in the order of the chain.

The cursor is the position, not the id: an event that was committed late comes at the end and is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet

from portal.audit.hashing import GENESIS, canonical_json, content_of
from portal.audit.models import AuditEvent, ChainLink

_BATCH: Final = 500


def records(*, after: int = 0, since: datetime | None = None) -> Iterator[dict[str, Any]]:
    """Yield the events after position `after`: content and hashes, from which anybody can recompute the chain.

    An event that was deleted in the database is None.
    """
    while links := list(_links(since).filter(pk__gt=after).order_by("position")[:_BATCH]):
        events = AuditEvent.objects.in_bulk([link.event_id for link in links])
        before = ChainLink.objects.in_bulk([link.position - 1 for link in links])
        for link in links:
            event, previous = events.get(link.event_id), before.get(link.position - 1)
            yield {
                "position": link.position,
                "hash": link.hash,
                "previous": previous.hash if previous else GENESIS,
                "event": content_of(event) if event else None,
            }
        after = links[-1].position


def line(record: dict[str, Any]) -> str:
    """Format a record as one line of JSON in ASCII."""
    return canonical_json(record)


def _links(since: datetime | None) -> QuerySet[ChainLink]:
    links = ChainLink.objects.all()
    if since is None:
        return links
    recent = AuditEvent.objects.filter(pk=OuterRef("event_id"), at__gte=since)
    return links.filter(Exists(recent))
