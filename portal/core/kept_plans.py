"""Statements that PostgreSQL plans once for each connection, and not with each run.

For a read by an index the plan costs ten times the read. A block is for statements that come again with the
same text; those of the ORM do when only their values differ.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from django.db import DEFAULT_DB_ALIAS, connections


def kept_plans() -> AbstractContextManager[None]:
    """Of the statements in the block. SQLite plans each anew, which costs it little."""
    connection = connections[DEFAULT_DB_ALIAS]
    keep = getattr(connection, "keeping_plans", nullcontext)  # of portal.core.postgresql
    block: AbstractContextManager[None] = keep()
    return block
