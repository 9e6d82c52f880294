from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from django.db.backends.postgresql import base
from psycopg import Cursor, errors
from psycopg.abc import Buffer
from psycopg.pq import TransactionStatus
from psycopg.types.datetime import TimestamptzLoader

# Executions before PostgreSQL keeps the plan of a statement: one that runs once is not worth it.
_PREPARE_AFTER: Final = 1


class _PreparingCursor(base.CursorMixin, Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **options: Any) -> _PreparingCursor:
        """Plan again when a migration changed the type of a column that a kept plan reads.

        Inside a transaction the statement fails, as the whole transaction has; its end forgets the plans.
        """
        try:
            return super().execute(query, params, **options)
        except errors.FeatureNotSupported:
            if self.connection.info.transaction_status != TransactionStatus.IDLE:
                raise
            self.connection.execute("DEALLOCATE ALL")
            return super().execute(query, params, **options)


class _UtcLoader(TimestamptzLoader):
    """Times of a session in UTC. Django's own loader takes each apart in Python code, ten times as slowly."""

    timezone = UTC  # Django puts its own in the place of a loader of another time zone

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(bytes(data).decode())
        except ValueError:
            return super().load(data)  # an error that says what Python cannot hold


class DatabaseWrapper(base.DatabaseWrapper):
    _prepares = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection: Any = super().get_new_connection(conn_params)
        if self.timezone is UTC:
            connection.adapters.register_loader("timestamptz", _UtcLoader)
        return connection

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        return {**params, "prepare_threshold": _PREPARE_AFTER}

    @contextmanager
    def keeping_plans(self) -> Iterator[None]:
        """Have the server keep the plans of the statements in the block (portal.core.kept_plans)."""
        before, self._prepares = self._prepares, bool(self.settings_dict.get("KEEPS_PLANS"))
        try:
            yield
        finally:
            self._prepares = before

    def create_cursor(self, name: str | None = None) -> Any:
        if self._prepares and name is None and self.connection is not None:
            return _PreparingCursor(self.connection)
        return super().create_cursor(name)

    def is_usable(self) -> bool:
        """Whether the server still holds the connection, which is asked once for each request.

        Between statements a server sends nothing but the end of the connection. Whatever has arrived,
        a statement decides.
        """
        connection = self.connection
        if connection is None or connection.closed:
            return False
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
        return not poll.poll(0) or super().is_usable()
