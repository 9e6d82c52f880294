"""Locks by name, across processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def advisory_lock(name: str) -> Iterator[None]:
    """Open a transaction that waits for others with this name. SQLite allows one writer, so no lock
    is needed there.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            digest = hashlib.sha256(name.encode()).digest()[:8]
            with connection.cursor() as cursor:
                key = int.from_bytes(digest, "big", signed=True)
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        yield
