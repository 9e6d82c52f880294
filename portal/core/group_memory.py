"""Memory for statements that group many rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def group_memory() -> Iterator[None]:
    """PostgreSQL groups by hashes in memory where they fit, and sorts on disk where not, which takes twice as
    long. It goes by `work_mem`, 4 MB by default: too little for the thousands of deployments of a day.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic(savepoint=False):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL work_mem = '16MB'")
        yield
