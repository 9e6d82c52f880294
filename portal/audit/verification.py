"""Recompute the chain from the events, and compare it with the anchors. Nothing is changed by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from portal.audit import anchor_store, anchors, sealing
from portal.audit.anchors import Anchor
from portal.audit.hashing import GENESIS, hash_link
from portal.audit.models import AuditEvent, ChainCheck, ChainLink
from portal.core import clock

_BATCH: Final = 1000
# An event is chained seconds after its commit. One whose time is this much older than that of events
# before it in the chain was not written by the portal at that time.
_LATEST: Final = timedelta(hours=1)


class Kind(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    REWRITTEN = "rewritten"
    UNREADABLE = "anchors not readable"


@dataclass(frozen=True, slots=True)
class Problem:
    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a verification. `position` is the last one that was checked; `unsealed` counts events that wait
    for the sweep.
    """

    position: int
    hash: str
    unsealed: int
    anchors: int
    problem: Problem | None


@dataclass(slots=True)
class _Walk:
    position: int = 0
    hash: str = GENESIS
    latest_at: datetime | None = None
    compared: int = 0


def verify(*, given: Iterable[Anchor] = (), with_store: bool = True) -> Report:
    """Stop at the first broken row. `given` are anchors from a log or a SIEM."""
    known, problem = [*anchors.in_database(), *given], None
    if with_store:
        try:
            stored = anchors.in_store()
        except anchor_store.AnchorStoreError as error:
            problem = Problem(Kind.UNREADABLE, str(error))
        else:
            known += stored
            if gone := anchors.missing_in_store(stored):
                problem = Problem(Kind.MISSING, f"object {gone[0]} is not in the store")
    walk = _Walk()
    # A broken row says more than an anchor that cannot be read.
    problem = _walk_chain(walk, known) or _first_inserted(walk) or problem
    waiting = 0 if problem else sealing.list_unsealed().count()
    return Report(walk.position, walk.hash, waiting, walk.compared, problem)


def verify_and_record() -> ChainCheck:
    """Verify the chain for the daily task, and store the result, which the audit page shows."""
    at = clock.now()
    report = verify()
    return ChainCheck.objects.create(
        at=at,
        position=report.position,
        anchors=report.anchors,
        problem=str(report.problem or ""),
    )


def last_check() -> ChainCheck | None:
    return ChainCheck.objects.first()


def _walk_chain(walk: _Walk, known: list[Anchor]) -> Problem | None:
    at_position: dict[int, list[Anchor]] = {}
    for anchor in known:
        at_position.setdefault(anchor.position, []).append(anchor)
    for link, event in _links():
        problem = _check_link(walk, link, event)
        if problem:
            return problem
        for anchor in at_position.pop(link.position, []):
            if anchor.hash != link.hash:
                return _rewritten(anchor)
            walk.compared += 1
    if at_position:
        return _cut_off(walk, at_position[min(at_position)][0])
    return None


def _links() -> Iterator[tuple[ChainLink, AuditEvent | None]]:
    after = -1
    while links := list(ChainLink.objects.filter(pk__gt=after).order_by("position")[:_BATCH]):
        events = AuditEvent.objects.in_bulk([link.event_id for link in links])
        for link in links:
            yield link, events.get(link.event_id)
        after = links[-1].position


def _check_link(walk: _Walk, link: ChainLink, event: AuditEvent | None) -> Problem | None:
    """Check the link against the one before it, and step on to it."""
    expected = walk.position + 1
    if link.position != expected:
        return Problem(Kind.MISSING, f"position {expected} was deleted from the chain")
    if event is None:
        text = f"event {link.event_id} at position {link.position} was deleted"
        return Problem(Kind.MISSING, text)
    if hash_link(position=link.position, previous=walk.hash, event=event) != link.hash:
        return Problem(
            Kind.CHANGED,
            f"event {event.pk} at position {link.position}, or its link, was changed: {event}",
        )
    if walk.latest_at and event.at + _LATEST < walk.latest_at:
        return _inserted(event, walk.latest_at)
    walk.position, walk.hash = link.position, link.hash
    walk.latest_at = max(walk.latest_at or event.at, event.at)
    return None


def _first_inserted(walk: _Walk) -> Problem | None:
    if walk.latest_at is None:
        return None
    event = sealing.list_unsealed().filter(at__lt=walk.latest_at - _LATEST).first()
    return _inserted(event, walk.latest_at) if event else None


def _inserted(event: AuditEvent, latest_at: datetime) -> Problem:
    return Problem(
        Kind.INSERTED,
        f"event {event.pk} says {event.at:%Y-%m-%d %H:%M} UTC, but events of {latest_at:%Y-%m-%d %H:%M} "
        f"were in the chain before it: {event}",
    )


def _rewritten(anchor: Anchor) -> Problem:
    return Problem(
        Kind.REWRITTEN,
        f"the chain up to position {anchor.position} is not the one that was anchored ({anchor.source}): "
        "events and links were replaced together",
    )


def _cut_off(walk: _Walk, anchor: Anchor) -> Problem:
    return Problem(
        Kind.MISSING,
        f"the chain ends at position {walk.position}, but position {anchor.position} was anchored "
        f"({anchor.source}): the last events were deleted",
    )
