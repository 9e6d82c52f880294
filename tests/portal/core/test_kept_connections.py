"""A kept connection is used again, and one that the server ended is opened anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps no connections"),
]


@contextmanager
def kept_connection() -> Iterator[BaseDatabaseWrapper]:
    """As a thread of the web process has it after a request."""
    own: Any = connection.copy()
    own.settings_dict = {**connection.settings_dict, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    own.connect()
    own.close_if_unusable_or_obsolete()
    try:
        yield own
    finally:
        own.close()


def pid_of(wrapper: BaseDatabaseWrapper) -> int:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_a_connection_that_the_server_ended_is_opened_anew() -> None:
    with kept_connection() as kept:
        pid = pid_of(kept)
        end(pid)

        kept.close_if_unusable_or_obsolete()

        assert pid_of(kept) != pid


def test_a_notification_does_not_end_a_connection() -> None:
    with kept_connection() as kept:
        pid = pid_of(kept)
        with kept.cursor() as cursor:
            cursor.execute("LISTEN something")
        with connection.cursor() as cursor:
            cursor.execute("NOTIFY something")

        kept.close_if_unusable_or_obsolete()

        assert pid_of(kept) == pid
