"""The ledger rows behind a number, one page at a time, and the estimate that is part of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Model, Q, QuerySet, Sum

from fleet.costs.domain import periods
from fleet.costs.domain.results import ZERO
from fleet.costs.selectors import open_rows
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.costs.selectors.open_rows import OpenRows
from fleet.models import LedgerDay, LedgerRow, LedgerTeamDay, LedgerTeamHour
from portal.core import clock

PAGE_SIZE = 50
_CURSOR_TIME = "%Y%m%dT%H%M"
_LONGEST_ID = 18


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Newest first. `estimated` has rows on the first page only; the amounts are over all pages."""

    sealed: Sequence[LedgerRow]
    # Of the last row, where older ones exist.
    next_cursor: str
    is_first: bool
    estimated: OpenRows
    sealed_amount: Decimal

    @property
    def total_amount(self) -> Decimal:
        return self.sealed_amount + self.estimated.amount


def page(
    *, team_slugs: Collection[str] | None, row_filter: LedgerFilter, cursor: str = ""
) -> LedgerPage:
    """Return a page of ledger rows. `team_slugs` None means the whole fleet, including unattributed pods and idle.
    An invalid cursor shows the first page.
    """
    after = _read(cursor)
    rows = row_filter.rows(team_slugs)
    if after is not None:
        hour, pk = after
        rows = rows.filter(Q(hour__lt=hour) | Q(hour=hour, pk__gt=pk), hour__lte=hour)
    shown = list(rows.order_by("-hour", "pk")[: PAGE_SIZE + 1])
    limit = PAGE_SIZE if after is None else 0
    return LedgerPage(
        sealed=shown[:PAGE_SIZE],
        next_cursor=_cursor_of(shown[PAGE_SIZE - 1]) if len(shown) > PAGE_SIZE else "",
        is_first=after is None,
        estimated=open_rows.list_rows(team_slugs=team_slugs, row_filter=row_filter, limit=limit),
        sealed_amount=_sealed_amount(team_slugs, row_filter),
    )


def _sealed_amount(team_slugs: Collection[str] | None, row_filter: LedgerFilter) -> Decimal:
    """Whole days from their roll-up: a month has millions of rows."""
    period = periods.cut(row_filter.start, row_filter.end, now=clock.now())
    amount = ZERO
    if period.days:
        first, last = period.days
        model: type[Model] = LedgerDay if row_filter.labels else LedgerTeamDay
        days = model._default_manager.filter(day__gte=first, day__lt=last)
        amount += _amount_of(days, team_slugs, row_filter)
    for start, end in period.hours:
        if row_filter.labels:
            rows = replace(row_filter, start=start, end=end).rows(team_slugs)
            amount += rows.aggregate(total=Sum("cost_amount"))["total"] or ZERO
        else:
            hours = LedgerTeamHour.objects.filter(hour__gte=start, hour__lt=end)
            amount += _amount_of(hours, team_slugs, row_filter)
    return amount


def _amount_of(
    sums: QuerySet[Any], team_slugs: Collection[str] | None, row_filter: LedgerFilter
) -> Decimal:
    sums = row_filter.filter_sums(sums, team_slugs)
    if row_filter.cluster_name:
        sums = sums.filter(cluster_name=row_filter.cluster_name)
    return Decimal(sums.aggregate(total=Sum("cost_micros"))["total"] or 0).scaleb(-6)


def _cursor_of(row: LedgerRow) -> str:
    return f"{row.hour.astimezone(UTC):{_CURSOR_TIME}}.{row.pk}"


def _read(cursor: str) -> tuple[datetime, int] | None:
    time, _, pk = cursor.partition(".")
    if not (pk.isascii() and pk.isdecimal() and len(pk) <= _LONGEST_ID):
        return None
    try:
        return datetime.strptime(time, _CURSOR_TIME).replace(tzinfo=UTC), int(pk)
    except ValueError:
        return None
