"""Once a day the head of the chain is written down outside the database: in the log, in the object store
under Object Lock, and as an event of its own, which goes wherever events are streamed to.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings

from portal.audit import anchor_store, sealing, trail
from portal.audit.actions import register
from portal.audit.models import AnchorCopy, ChainAnchor, ChainLink
from portal.core import clock
from portal.core.locks import advisory_lock

logger = logging.getLogger(__name__)
ANCHORED: Final = register("audit.anchored", "anchored the audit trail in")
_FORMAT: Final = "slipway-audit-anchor/1"


@dataclass(frozen=True, slots=True)
class _Portal:
    name: str = "slipway"


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchor of the chain. `source` says where it was read: "database", the key of an object, or "given"."""

    position: int
    hash: str
    source: str


def make() -> ChainAnchor | None:
    """Anchor the chain, once a day (UTC). None if the day has its anchor, or nothing was recorded yet."""
    at = clock.now()
    if ChainAnchor.objects.filter(day=at.date()).exists():
        return None
    sealing.seal(floor=0)
    with advisory_lock(sealing.LOCK):
        head = sealing.head()
        if head is None or ChainAnchor.objects.filter(day=at.date()).exists():
            return None
        ids = ChainLink.objects.order_by("-event_id").values_list("event_id", flat=True)
        anchor = ChainAnchor.objects.create(
            day=at.date(),
            position=head.position,
            hash=head.hash,
            last_event_id=ids[0],
            made_at=at,
        )
        trail.record(
            actor=_Portal(),
            action=ANCHORED,
            obj=anchor,
            after={"position": head.position},
            evidence=head.hash,
        )
    logger.info("audit %s: position %s, hash %s", anchor, anchor.position, anchor.hash)
    return anchor


def store_copies() -> int:
    """Write the anchors that the object store lacks, oldest first. A crash in between writes one again
    under the same key with the same bytes. Raises AnchorStoreError.
    """
    missing = list(ChainAnchor.objects.filter(copy__isnull=True).order_by("day"))
    is_locking = bool(missing and settings.SLIPWAY_AUDIT_ANCHOR_DAYS and anchor_store.has_lock())
    for anchor in missing:
        kept = timedelta(days=settings.SLIPWAY_AUDIT_ANCHOR_DAYS)
        until = clock.now() + kept if is_locking else None
        key = key_of(anchor)
        version_id = anchor_store.put(key, body_of(anchor), locked_until=until)
        AnchorCopy.objects.get_or_create(
            anchor=anchor,
            defaults={
                "key": key,
                "version_id": version_id,
                "locked_until": until,
                "stored_at": clock.now(),
            },
        )
    return len(missing)


def key_of(anchor: ChainAnchor) -> str:
    return f"{anchor_store.PREFIX}{anchor.day}.json"


def body_of(anchor: ChainAnchor) -> bytes:
    content = {
        "format": _FORMAT,
        "day": str(anchor.day),
        "position": anchor.position,
        "hash": anchor.hash,
        "made_at": anchor.made_at.isoformat(),
    }
    return json.dumps(content, sort_keys=True).encode()


def in_database() -> list[Anchor]:
    return [Anchor(row.position, row.hash, f"database, {row}") for row in ChainAnchor.objects.all()]


def in_store() -> list[Anchor]:
    """Raises AnchorStoreError, also for an object that is no anchor."""
    return [_read(body, f"object {key}") for key, body in sorted(anchor_store.read_all())]


def missing_in_store(stored: Iterable[Anchor]) -> list[str]:
    """Return the keys that the database says were written and the object store does not have."""
    present = {anchor.source.removeprefix("object ") for anchor in stored}
    keys = AnchorCopy.objects.order_by("stored_at").values_list("key", flat=True)
    return [key for key in keys if key not in present]


def _read(body: bytes, source: str) -> Anchor:
    try:
        content = json.loads(body)
        return Anchor(int(content["position"]), str(content["hash"]), source)
    except (ValueError, KeyError, TypeError) as error:
        raise anchor_store.AnchorStoreError(f"{source} is not an anchor: {error}") from error
