"""Many rows of a group as one text of JSON: the driver takes each row and column apart for longer than Python parses it."""

from __future__ import annotations

from typing import Any

from django.db.models import Aggregate, Q, TextField
from django.db.models.functions import Cast


class _ObjectAgg(Aggregate):
    function = "JSON_OBJECT_AGG"
    arity = 2
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, function="JSON_GROUP_OBJECT", **extra)


def object_text(name: str, value: str, *, where: Q) -> Cast:
    """An object of the group's rows that pass `where`, as its text: column `name`, which differs within a group, to
    column `value`. None, or on SQLite "{}", where none passes.
    """
    return Cast(_ObjectAgg(name, value, filter=where), TextField())
