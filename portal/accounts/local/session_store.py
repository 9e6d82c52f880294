"""Django's sessions in the database, with the person, the device and the last use in columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from portal.accounts.local.models import BrowserSession
from portal.accounts.models import User
from portal.core import clock

# What a sign-in puts into the session.
BEGAN: Final = "began"


class SessionStore(DatabaseStore):
    """The store of sessions with a row for each person's session. `seen_at` is the last use as stored, `person`
    whom its row names; None for a session that was not read.
    """

    seen_at: datetime | None = None
    person: User | None = None

    def __init__(self, session_key: str | None = None) -> None:
        """Treat a key with NUL as none: PostgreSQL refuses NUL, which a cookie may hold."""
        super().__init__(None if session_key and "\0" in session_key else session_key)

    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        return BrowserSession

    def load(self) -> dict[str, Any]:
        """Read the session and its person in one query. A session that is unknown, expired or idle is flushed."""
        at = timezone.now()  # noqa: TID251  by which Django writes `expire_date`
        rows = self.get_model_class().objects.select_related("user")
        rows = rows.only("session_key", "session_data", "last_seen_at", "user")
        row = rows.filter(session_key=self.session_key, expire_date__gt=at).first()
        if row is None or _is_idle(row.last_seen_at):
            self.flush()
            return {}
        self.seen_at, self.person = row.last_seen_at, row.user
        data: dict[str, Any] = self.decode(row.session_data)
        return data

    def create_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        row: Any = super().create_model_instance(data)
        at, began = clock.now(), data.get(BEGAN, {})
        row.user_id = data.get(SESSION_KEY)
        row.began_at = datetime.fromisoformat(began["at"]) if began else at
        row.last_seen_at = at
        row.address = began.get("address", "")
        row.user_agent = began.get("user_agent", "")
        row.method = began.get("method", "")
        return row  # type: ignore[no-any-return]  # the class of get_model_class


def _is_idle(seen_at: datetime) -> bool:
    limit = timedelta(minutes=settings.SLIPWAY_SESSION_IDLE_MINUTES)
    return bool(limit) and clock.now() - seen_at >= limit
