"""Queries of the ORM that are translated to SQL once per connection and run with other values.

The translation costs many times what PostgreSQL needs to answer by an index. A query for which this matters is
stated as any other, with a `Parameter` in the place of each value:

    _BY_DIGEST = CompiledQuery(lambda: ApiToken.objects.filter(digest=Parameter("digest", CharField())))
    rows = _BY_DIGEST.rows(digest="…")

Related objects come along by `select_related`; nothing is prefetched. PostgreSQL keeps the plan as well, unless the
best plan depends on the values: such a query has `keeps_plan=False`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BooleanField,
    Expression,
    F,
    Field,
    IntegerField,
    Model,
    QuerySet,
    TextField,
)
from django.db.models.query import get_related_populators

from portal.core.kept_plans import kept_plans
from portal.core.statements import stored_json

M = TypeVar("M", bound=Model)


class Parameter(Expression):
    """A value that is known when the query runs, of the type of `field`, to compare a column with.

    An integer that no such column can hold equals none: the query then has no rows.
    """

    def __init__(self, name: str, field: Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Stands itself among the parameters of the statement, where its value will be."""
        return "%s", [self]

    def to_database(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        return self.output_field.get_db_prep_value(value, connection)


class _Ids(Parameter):
    def to_database(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        return list(value) if connection.vendor == "postgresql" else json.dumps(list(value))


class IsAmong(Expression):
    """Whether a column of ids has one of the ids that are known when the query runs: one statement for any number."""

    conditional = True

    def __init__(self, column: str, name: str) -> None:
        super().__init__(output_field=BooleanField())
        self._sources: list[Any] = [F(column), _Ids(name, TextField())]

    def get_source_expressions(self) -> list[Any]:
        return self._sources

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        self._sources = list(exprs)

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        column, ids = self._sources
        sql, params = compiler.compile(column)
        _, ids_params = compiler.compile(ids)
        among = "= ANY(%s::bigint[])"
        if connection.vendor != "postgresql":
            among = "IN (SELECT value FROM json_each(%s))"
        return f"{sql} {among}", [*params, *ids_params]


@dataclass(frozen=True, slots=True)
class _Compiled:
    sql: str
    params: Sequence[Any]
    select: Sequence[Any]
    klass_info: Any
    annotations: dict[str, int]
    converters: Sequence[tuple[int, Sequence[Callable[..., Any]], Any]]


class CompiledQuery(Generic[M]):
    def __init__(self, build: Callable[[], QuerySet[M, Any]], *, keeps_plan: bool = True) -> None:
        self._build = build
        self._keeps_plan = keeps_plan

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """What is selected, as a tuple for each row."""
        connection = connections[DEFAULT_DB_ALIAS]
        return [tuple(row) for row in self._run(connection, self._compiled(connection), values)]

    def objects(self, **values: Any) -> list[M]:
        connection = connections[DEFAULT_DB_ALIAS]
        compiled = self._compiled(connection)
        info, select = compiled.klass_info, compiled.select
        model, fields = info["model"], info["select_fields"]
        start, end = fields[0], fields[-1] + 1
        names = [column[0].target.attname for column in select[start:end]]
        related = get_related_populators(info, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # stubs of Django 6
        objects = []
        for row in self._run(connection, compiled, values):
            instance = model.from_db(DEFAULT_DB_ALIAS, names, row[start:end])
            for populator in related:
                populator.populate(row, instance)
            for name, place in compiled.annotations.items():
                setattr(instance, name, row[place])
            objects.append(instance)
        return objects

    def first(self, **values: Any) -> M | None:
        """Of a query that finds at most one object."""
        return next(iter(self.objects(**values)), None)

    def _compiled(self, connection: BaseDatabaseWrapper) -> _Compiled:
        """Kept by the connection, which belongs to one thread, for as long as the query is."""
        kept = vars(connection).setdefault("slipway_compiled_queries", WeakKeyDictionary())
        if self not in kept:
            kept[self] = _compile(self._build(), connection)
        compiled: _Compiled = kept[self]
        return compiled

    def _run(
        self, connection: BaseDatabaseWrapper, compiled: _Compiled, values: dict[str, Any]
    ) -> list[list[Any]]:
        with kept_plans() if self._keeps_plan else nullcontext():
            return _run(connection, compiled, values)


def _compile(queryset: QuerySet[Any, Any], connection: BaseDatabaseWrapper) -> _Compiled:
    compiler = queryset.query.get_compiler(connection=connection)
    sql, params = compiler.as_sql()
    converters = compiler.get_converters([column[0] for column in compiler.select])
    for functions, expression in converters.values():
        field = expression.output_field
        functions[:] = [stored_json.quicker(function, field) for function in functions]
    return _Compiled(
        sql=sql,
        params=tuple(params),
        select=compiler.select,
        klass_info=compiler.klass_info,
        annotations=compiler.annotation_col_map,
        converters=[(place, *rest) for place, rest in converters.items()],
    )


def _run(
    connection: BaseDatabaseWrapper, compiled: _Compiled, values: dict[str, Any]
) -> list[list[Any]]:
    if any(_is_out_of_range(param, values, connection) for param in compiled.params):
        return []
    params = [
        param.to_database(values[param.name], connection) if isinstance(param, Parameter) else param
        for param in compiled.params
    ]
    with connection.cursor() as cursor:
        cursor.execute(compiled.sql, params)
        rows = [list(row) for row in cursor.fetchall()]
    for place, functions, expression in compiled.converters:
        for row in rows:
            for function in functions:
                row[place] = function(row[place], expression, connection)
    return rows


def _is_out_of_range(param: Any, values: dict[str, Any], connection: BaseDatabaseWrapper) -> bool:
    if not isinstance(param, Parameter) or not isinstance(param.output_field, IntegerField):
        return False
    least, most = connection.ops.integer_field_range(param.output_field.get_internal_type())
    value = values[param.name]
    return bool((least is not None and value < least) or (most is not None and value > most))
