"""Whether a row has one of the texts of a search, which are known when the query runs.

Where a kept plan compares a column with parameters by `icontains`, PostgreSQL escapes and raises each of them anew for each row.
Here they are patterns already, raised once, and compared with the columns as one text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, TextField

from portal.core.compiled_queries import Parameter


class _Patterns(Parameter):
    def to_database(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        patterns = [f"%{connection.ops.prep_for_like_query(text)}%" for text in value]
        return patterns if connection.vendor == "postgresql" else json.dumps(patterns)


class HasAnyText(Expression):
    """Of columns that are never null and parameter `name`, a list of texts without spaces; as `icontains`."""

    conditional = True

    def __init__(self, columns: Sequence[str], name: str) -> None:
        super().__init__(output_field=BooleanField())
        self._sources: list[Any] = [_Patterns(name, TextField()), *map(F, columns)]

    def get_source_expressions(self) -> list[Any]:
        return self._sources

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        self._sources = list(exprs)

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        (_, patterns), *columns = (compiler.compile(source) for source in self._sources)
        text = " || ' ' || ".join(sql for sql, _ in columns)
        params = [param for _, column_params in columns for param in column_params]
        if connection.vendor == "postgresql":
            raised = "ARRAY(SELECT UPPER(word) FROM unnest(%s::text[]) word)"
            return f"UPPER({text}) LIKE ANY({raised})", [*params, *patterns]
        like = f"{text} LIKE value ESCAPE '\\'"
        return f"EXISTS (SELECT 1 FROM json_each(%s) WHERE {like})", [*patterns, *params]  # noqa: S608  columns
