"""A person's own sessions: listed, ended one by one, or all at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.local import devices
from portal.accounts.local.models import BrowserSession
from portal.accounts.local.session_store import BEGAN
from portal.accounts.models import User
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import NotFound

ENDED: Final = register("session.ended", "ended sessions of")
# How a session began, unless a provider's label says so.
LOCAL: Final = "password"
LOCAL_WITH_CODE: Final = "password and code"
LOCAL_WITH_PASSKEY: Final = "password and passkey"
# The last use is written this often at most.
_SEEN_EVERY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as its owner sees it. `name` identifies it without its key."""

    name: str
    device: str
    address: str
    method: str
    began_at: datetime
    last_seen_at: datetime
    is_current: bool


def method_of(session: SessionBase) -> str:
    """Return how a session began. One for which that is unknown counts as one with a password."""
    return str(session.get(BEGAN, {}).get("method", LOCAL))


def list_sessions(user: User, *, current_key: str | None) -> list[SessionRow]:
    """List the sessions that are valid now: the current one, then by last use."""
    rows = [
        SessionRow(
            name=_name_of(row.session_key),
            device=devices.describe(row.user_agent),
            address=row.address,
            method=row.method,
            began_at=row.began_at,
            last_seen_at=row.last_seen_at,
            is_current=row.session_key == current_key,
        )
        for row in _valid(user).order_by("-last_seen_at")
    ]
    return sorted(rows, key=lambda row: not row.is_current)


def end(*, actor: User, name: str) -> None:
    """End one of the actor's own sessions."""
    keys = [row.session_key for row in _valid(actor) if _name_of(row.session_key) == name]
    if not keys:
        raise NotFound("This session has ended already.")
    with transaction.atomic():
        _valid(actor).filter(pk__in=keys).delete()
        _record(actor, 1, "one of their own")


def end_others(*, actor: User, current_key: str | None) -> int:
    with transaction.atomic():
        count, _ = _valid(actor).exclude(pk=current_key).delete()
        if count:
            _record(actor, count, "all others of their own")
    return count


def end_all(user: User, *, besides: str | None = None) -> int:
    """End a person's sessions inside the transaction of the reason for it, which is audited."""
    count, _ = BrowserSession.objects.filter(user=user).exclude(pk=besides).delete()
    return count


def forget_expired() -> None:
    """Delete expired sessions. Called at each sign-in, so that rows which sign nobody in do not pile up."""
    BrowserSession.objects.filter(expire_date__lt=clock.now()).delete()


def touch(session_key: str | None, *, seen_at: datetime | None) -> None:
    """Write the last use, unless it was written a few minutes ago."""
    at = clock.now()
    if session_key and seen_at is not None and at - seen_at >= _SEEN_EVERY:
        BrowserSession.objects.filter(pk=session_key).update(last_seen_at=at)


def _valid(user: User) -> QuerySet[BrowserSession]:
    return BrowserSession.objects.filter(user=user, expire_date__gt=clock.now())


def _name_of(session_key: str) -> str:
    return hashlib.sha256(session_key.encode()).hexdigest()[:24]


def _record(actor: User, count: int, reason: str) -> None:
    trail.record(
        actor=actor,
        action=ENDED,
        obj=actor,
        label=actor.username,
        after={"sessions": count},
        reason=reason,
    )
