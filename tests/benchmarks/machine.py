"""How slow this machine is, beside the one for which bounds in milliseconds are stated."""

from __future__ import annotations

import json
import time
from typing import Final

# What `_work` took at best of `_ROUNDS` on a quiet machine of two cores (2026-11-28).
REFERENCE_MS: Final = 37.0
_ROUNDS: Final = 60
_ROWS: Final = [{"id": n, "name": f"row {n}", "tags": ["a", "b"], "x": n / 7} for n in range(2000)]


def slowness() -> float:
    """Return the factor of bounds in milliseconds: 2 on a machine that takes twice the time of the reference.

    Needs the database of the run, to which it sends SQL that reads no table.
    """
    taken = min(_time_of_work() for _ in range(_ROUNDS))
    factor = taken / REFERENCE_MS
    print(
        f"machine: {taken:.0f} ms (reference {REFERENCE_MS:.0f}): bounds in ms times {factor:.2f}"
    )
    return factor


def _time_of_work() -> float:
    began = time.perf_counter()
    _work()
    return 1000 * (time.perf_counter() - began)


def _work() -> None:
    """Half of it is Python, half is PostgreSQL: many short statements and a long one."""
    from django.db import connection

    for _ in range(3):
        rows = json.loads(json.dumps(_ROWS))
        sorted((f"{row['name']}/{','.join(row['tags'])}" for row in rows), reverse=True)
    with connection.cursor() as cursor:
        for number in range(60):
            cursor.execute("SELECT %s + 1", [number])
            cursor.fetchone()
        cursor.execute("SELECT sum(sqrt(n)), max(n::text) FROM generate_series(1, 60000) n")
        cursor.fetchone()
