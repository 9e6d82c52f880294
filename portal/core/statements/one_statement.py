"""Several writes as one statement of PostgreSQL: one round trip, one plan that is kept, and all of them or none.

Each part is a data-modifying query of its own; none sees the rows of another, so keys must be known before
(`NextId`). SQLite has no such statements: there callers write row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import BigIntegerField, Field, Func, Model, Value

from portal.core.kept_plans import kept_plans


@dataclass(frozen=True, slots=True)
class Part:
    sql: str
    params: Sequence[Any]


def is_supported() -> bool:
    return connections[DEFAULT_DB_ALIAS].vendor == "postgresql"


class NextId(Func):
    """The primary key that the next row of the model will have, taken from its sequence. NULL on SQLite."""

    template = "nextval(pg_get_serial_sequence(%(expressions)s))"
    output_field = BigIntegerField()

    def __init__(self, model: type[Model]) -> None:
        super().__init__(Value(f'"{model._meta.db_table}"'), Value(str(model._meta.pk.column)))

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> Any:
        return "NULL", []


def take_id(model: type[Model]) -> int | None:
    """`NextId` before any statement, for what has to be known before its row is written. None on SQLite; a key that
    gets no row leaves a gap, as a failed insert does.
    """
    if not is_supported():
        return None
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        names = [f'"{model._meta.db_table}"', str(model._meta.pk.column)]
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, %s))", names)
        return int(cursor.fetchone()[0])


def insert_of(row: Model) -> Part:
    """The row as `save(force_insert=True)` writes it. Its key is filled by the database if it is None."""
    connection, has_key = connections[DEFAULT_DB_ALIAS], row.pk is not None
    values = []
    for field in _fields(type(row), has_key=has_key):
        value = field.pre_save(row, add=True)
        values.append(None if value is None else field.get_db_prep_save(value, connection))
    literals = tuple(map(_literal, values))
    params = [value for value, literal in zip(values, literals, strict=True) if literal is None]
    return Part(_insert_sql(type(row), literals, has_key=has_key), params)


def _literal(value: Any) -> str | None:
    """What stands in the statement itself, because most columns of a new row are empty, and psycopg remembers
    statements of at most 50 parameters.
    """
    if value is None:
        return "NULL"
    return "''" if value.__class__ is str and not value else None


def run(parts: Sequence[Part]) -> None:
    """Raises what the database raises; then nothing is written, and an open transaction can go on."""
    connection = connections[DEFAULT_DB_ALIAS]
    *before, last = parts
    named = ", ".join(f"part{number} AS ({part.sql})" for number, part in enumerate(before))
    sql = f"WITH {named} {last.sql}" if named else last.sql
    params = [param for part in parts for param in part.params]
    alone = nullcontext() if not connection.in_atomic_block else transaction.atomic()
    with kept_plans(), alone, connection.cursor() as cursor:
        cursor.execute(sql, params)


@cache
def _fields(model: type[Model], *, has_key: bool) -> tuple[Field[Any, Any], ...]:
    fields = model._meta.local_concrete_fields
    return tuple(field for field in fields if has_key or not field.primary_key)


@lru_cache(maxsize=256)
def _insert_sql(model: type[Model], literals: tuple[str | None, ...], *, has_key: bool) -> str:
    quote = connections[DEFAULT_DB_ALIAS].ops.quote_name
    fields = _fields(model, has_key=has_key)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    values = ", ".join(literal or "%s" for literal in literals)
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES ({values})"  # noqa: S608  names of the model
