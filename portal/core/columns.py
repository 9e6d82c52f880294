"""Write columns of many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.db import connection, models


def write(rows: Sequence[models.Model], names: Sequence[str]) -> None:
    """Update rows of one model in one round trip.

    Faster than `bulk_update`, which builds one statement with a CASE per row and column.
    """
    if not rows:
        return
    meta, quote = rows[0]._meta, connection.ops.quote_name
    fields = [cast("models.Field[Any, Any]", meta.get_field(name)) for name in names]
    changes = ", ".join(f"{quote(str(field.column))} = %s" for field in fields)
    where = f"{quote(str(meta.pk.column))} = %s"
    values = [
        [
            *(field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields),
            row.pk,
        ]
        for row in rows
    ]
    table = quote(meta.db_table)
    statement = f"UPDATE {table} SET {changes} WHERE {where}"  # noqa: S608  names of the model
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
