"""Django's sessions in the database, with the person, the device and the last use in columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import CharField, DateTimeField
from django.utils import timezone

from portal.accounts.local.models import BrowserSession
from portal.accounts.models import User
from portal.core import clock
from portal.core.compiled_queries import CompiledQuery, Parameter

# What a sign-in puts into the session.
BEGAN: Final = "began"
_PERSON: Final = "_auth_user_id"


class SessionStore(DatabaseStore):
    """`seen_at` is the last use as stored, `person` whom its row names; None for a session that was not read."""

    seen_at: datetime | None = None
    person: User | None = None

    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        return BrowserSession

    def load(self) -> dict[str, Any]:
        key = str(self.session_key)
        at = timezone.now()  # noqa: TID251  by which Django writes `expire_date`
        # PostgreSQL refuses NUL, which a cookie may hold.
        row = _VALID.first(key=key, at=at) if "\0" not in key else None
        if row is None:
            self._session_key = None  # as Django's own does
            return {}
        if _is_idle(row.last_seen_at):
            self.delete(row.session_key)
            self._session_key = None
            return {}
        self.seen_at, self.person = row.last_seen_at, row.user
        data: dict[str, Any] = self.decode(row.session_data)
        return data

    def create_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        row: Any = super().create_model_instance(data)
        at, began = clock.now(), data.get(BEGAN, {})
        row.user_id = data.get(_PERSON)
        row.began_at = datetime.fromisoformat(began["at"]) if began else at
        row.last_seen_at = at
        row.address = began.get("address", "")
        row.user_agent = began.get("user_agent", "")
        row.method = began.get("method", "")
        return row  # type: ignore[no-any-return]  # the class of get_model_class


# Each request of a browser reads it, and the person along with it.
_VALID: Final = CompiledQuery["BrowserSession"](
    lambda: (
        SessionStore.get_model_class()
        .objects.select_related("user")
        .only("session_key", "session_data", "last_seen_at", "user")
        .filter(
            session_key=Parameter("key", CharField()),
            expire_date__gt=Parameter("at", DateTimeField()),
        )
    )
)


def _is_idle(seen_at: datetime) -> bool:
    limit = timedelta(minutes=settings.SLIPWAY_SESSION_IDLE_MINUTES)
    return bool(limit) and clock.now() - seen_at >= limit
