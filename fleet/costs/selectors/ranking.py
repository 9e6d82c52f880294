"""The most expensive groups of a period, ranked by the database: only those that a page shows come back, and one
sum of all.

One statement reads the roll-ups, the rows beside them and the estimates of unsealed hours. Money in it is
integer micro-dollars, so that sums are exact on SQLite too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, F, QuerySet, Value, When

from fleet.costs.domain.ledger import MICRO
from fleet.costs.domain.results import ZERO, GroupBy, GroupKey, IdleRule
from fleet.costs.selectors import open_hours, ranking_sql, sealed, unpriced, usage
from fleet.costs.selectors.open_hours import Unsealed
from fleet.costs.selectors.sealed import Scope
from fleet.models import LedgerKind, UnpricedHour

_Part = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class GroupTotal:
    """The total of a group. `unpriced_ms` of `gpu_ms` have no price and cost 0."""

    key: GroupKey
    allocated: Decimal = ZERO
    estimated: Decimal = ZERO
    gpu_ms: int = 0
    unpriced_ms: int = 0

    @property
    def amount(self) -> Decimal:
        return self.allocated + self.estimated

    def weight(self, rule: IdleRule) -> int:
        """Return the weight of this total in sharing idle: micro-dollars, or GPU milliseconds."""
        return self.gpu_ms if rule is IdleRule.BY_GPU_TIME else int(self.amount / MICRO)

    @property
    def is_unpriced(self) -> bool:
        return self.amount == 0 and 0 < self.gpu_ms <= self.unpriced_ms


_NOTHING = GroupTotal(GroupKey())


@dataclass(frozen=True, slots=True)
class Ranking:
    """A page of ranked groups: `page` in order, `idle` by cluster where that is the grouping, `held` the sum of all
    that is not idle, in `held_count` groups.
    """

    page: Sequence[GroupTotal]
    idle: Sequence[GroupTotal]
    held: GroupTotal
    # The sum of the groups that are more expensive than those of the page.
    before: GroupTotal
    held_count: int
    unpriced_count: int
    has_demo_data: bool

    @property
    def is_unpriced(self) -> bool:
        """Whether no group has a price."""
        count = self.held_count + len(self.idle)
        return 0 < count == self.unpriced_count + sum(one.is_unpriced for one in self.idle)


def rank(
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy | None,
    unsealed: Unsealed,
    *,
    limit: int | None,
    offset: int = 0,
) -> Ranking:
    """Return the most expensive groups after `offset`; a limit of None returns all. Equal amounts are ordered by
    name.
    """
    parts = list(_parts(scope, start, end, group_by, unsealed))
    if not parts:
        return Ranking((), (), _NOTHING, _NOTHING, 0, 0, has_demo_data=False)
    count = len(sealed.list_group_columns(group_by))
    statement = ranking_sql.statement(
        [sql for sql, _ in parts],
        names=count,
        is_idle_split=group_by is GroupBy.CLUSTER,
        is_limited=limit is not None,
    )
    params = [param for _, of_part in parts for param in of_part]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*params, *(() if limit is None else (limit, offset, offset))])
        rows = cursor.fetchall()
    return _ranking(rows, group_by, count)


def _ranking(rows: Sequence[Any], group_by: GroupBy | None, count: int) -> Ranking:
    page = sorted(
        (row for row in rows if row[0] == ranking_sql.PAGE),
        key=lambda row: (-(row[1 + count] + row[2 + count]), row[1 : 1 + count]),
    )
    idle = sorted(
        (row for row in rows if row[0] == ranking_sql.IDLE), key=lambda row: row[1 : 1 + count]
    )
    (whole,) = (row for row in rows if row[0] == ranking_sql.ALL)
    before = [row for row in rows if row[0] == ranking_sql.BEFORE]
    return Ranking(
        page=[_total(row, group_by, count) for row in page],
        idle=[_total(row, group_by, count, is_idle=True) for row in idle],
        held=_total(whole, None, count),
        before=_total(before[0], None, count) if before else _NOTHING,
        held_count=whole[-2],
        unpriced_count=whole[-1],
        has_demo_data=any(row[5 + count] for row in (*idle, whole)),
    )


def _total(
    row: Sequence[Any], group_by: GroupBy | None, count: int, *, is_idle: bool = False
) -> GroupTotal:
    cost, estimate, gpu_ms, unpriced_ms = row[1 + count : 5 + count]
    return GroupTotal(
        usage.build_key(group_by, row[1 : 1 + count], is_idle=is_idle),
        Decimal(cost).scaleb(-6),
        Decimal(estimate).scaleb(-6),
        gpu_ms,
        unpriced_ms,
    )


def _parts(
    scope: Scope, start: datetime, end: datetime, group_by: GroupBy | None, unsealed: Unsealed
) -> Iterator[_Part]:
    names = len(sealed.list_group_columns(group_by))
    for rows in sealed.group_sums(scope, start, end, group_by, with_rows=True):
        yield from _part(rows, ranking_sql.select_sealed(names))
    if unsealed.kept:
        yield from _part(_kept(scope, group_by, unsealed), ranking_sql.select_estimate(names))
    entries = _live(scope, group_by, unsealed)
    if entries:
        yield ranking_sql.select_json(names), [json.dumps(entries)]
    if UnpricedHour.objects.filter(hour__gte=start, hour__lt=end).exists():
        ledger_rows = unpriced.filter_unpriced(sealed.rows_in(scope, start, end))
        rows = sealed.columns_of_rows(ledger_rows, group_by)
        yield from _part(rows, ranking_sql.select_unpriced(names))


def _part(rows: QuerySet[Any, Any], template: str) -> Iterator[_Part]:
    """Yield the SQL of a query. Yields nothing for a query that the ORM knows to be empty."""
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:
        return
    yield template.format(sql=sql), params


def _kept(scope: Scope, group_by: GroupBy | None, unsealed: Unsealed) -> QuerySet[Any, Any]:
    names: tuple[str, ...] = sealed.list_group_columns(group_by)
    if group_by is GroupBy.CLUSTER:
        names = ("open_hour__cluster__name",)
    unpriced_ms = Case(When(is_priced=False, then=F("gpu_milliseconds")), default=Value(0))
    rows = open_hours.filter_kept_rows(unsealed, scope).annotate(unpriced_ms=unpriced_ms)
    return rows.values_list("is_idle", *names, "cost_micros", "gpu_milliseconds", "unpriced_ms")


def _live(scope: Scope, group_by: GroupBy | None, unsealed: Unsealed) -> list[list[Any]]:
    return [
        [
            int(entry.kind == LedgerKind.IDLE),
            *open_hours.list_group_values(entry, group_by),
            int(entry.cost_amount / MICRO),
            entry.gpu_milliseconds,
            0 if entry.is_priced else entry.gpu_milliseconds,
        ]
        for entry in open_hours.entries_in(unsealed, scope)
    ]
