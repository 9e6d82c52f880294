"""Append committed events to the chain of hashes.

Writers of events never wait for it: a sweep chains what has been committed. A link's position is its place
in the order of sealing, not of ids, so an event that commits late with a lower id gets the next position
like any other and no link ever changes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet

from portal.audit.hashing import GENESIS, hash_link
from portal.audit.models import AuditEvent, ChainAnchor, ChainLink
from portal.core import clock
from portal.core.locks import advisory_lock

LOCK: Final = "audit chain"
_BATCH: Final = 1000


def seal(*, floor: int | None = None, batch: int = _BATCH) -> int:
    """Chain all committed events, a batch in a transaction, and return how many.

    Events up to the anchor before the last one are not checked again; pass `floor=0` to check all. Only
    transactions that stay open for longer than a day commit events below, and the daily anchor passes 0.
    """
    lowest = _settled_id() if floor is None else floor
    sealed = 0
    while True:
        count = _seal_batch(lowest, batch)
        sealed += count
        if count < batch:
            return sealed


def list_unsealed(floor: int = 0) -> QuerySet[AuditEvent]:
    """Return the committed events without a link, lowest id first."""
    links = ChainLink.objects.filter(event_id=OuterRef("pk"))
    return AuditEvent.objects.filter(~Exists(links), pk__gt=floor).order_by("pk")


def oldest_unsealed_at() -> datetime | None:
    """Return the time of the oldest unsealed event above the settled ones, where `seal` looks for them. None if
    there is none.
    """
    return list_unsealed(_settled_id()).values_list("at", flat=True).first()


def head() -> ChainLink | None:
    return ChainLink.objects.order_by("-position").first()


def _settled_id() -> int:
    ids = ChainAnchor.objects.order_by("-day").values_list("last_event_id", flat=True)[:2]
    return ids[1] if len(ids) == 2 else 0


def _seal_batch(floor: int, batch: int) -> int:
    """One sealer at a time: the next statement after the lock sees the links of the one before."""
    with advisory_lock(LOCK):
        last = head()
        position, previous = (last.position, last.hash) if last else (0, GENESIS)
        at = clock.now()
        links = []
        for event in list_unsealed(floor)[:batch]:
            position += 1
            previous = hash_link(position=position, previous=previous, event=event)
            links.append(
                ChainLink(position=position, event_id=event.pk, hash=previous, sealed_at=at)
            )
        ChainLink.objects.bulk_create(links)
    return len(links)
