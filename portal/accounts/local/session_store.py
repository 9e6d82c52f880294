"""Django's sessions in the database, with the person, the device and the last use in columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from portal.core import clock

if TYPE_CHECKING:
    from portal.accounts.local.models import BrowserSession

# What a sign-in puts into the session.
BEGAN: Final = "began"
_PERSON: Final = "_auth_user_id"


class SessionStore(DatabaseStore):
    """`seen_at` is the last use as stored; None for a session that was not read."""

    seen_at: datetime | None = None

    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        # Named here, because Django loads models before this module's users.
        from portal.accounts.local.models import BrowserSession  # noqa: PLC0415  circular

        return BrowserSession

    def load(self) -> dict[str, Any]:
        row: BrowserSession | None = self._get_session_from_db()  # type: ignore[attr-defined]  # Django's own
        if row is None:
            return {}
        if _is_idle(row.last_seen_at):
            self.delete(row.session_key)
            self._session_key = None  # as Django's own does for one that expired
            return {}
        self.seen_at = row.last_seen_at
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


def _is_idle(seen_at: datetime) -> bool:
    limit = timedelta(minutes=settings.SLIPWAY_SESSION_IDLE_MINUTES)
    return bool(limit) and clock.now() - seen_at >= limit
