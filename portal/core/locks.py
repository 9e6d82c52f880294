"""One at a time, by name, across processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """A transaction that waits for others of this name. SQLite has one writer anyhow, so there it
    only makes the transaction.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            digest = hashlib.sha256(name.encode()).digest()[:8]
            with connection.cursor() as cursor:
                key = int.from_bytes(digest, "big", signed=True)
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        yield
