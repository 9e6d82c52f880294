"""Sums of sealed ledger rows by group, read from the roll-ups where a period has whole months or days.

What is left of a period at its ends is read from hours: of teams and clusters by their own roll-up, of
other groups by that of four hours, and at most three hours from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    DecimalField,
    ExpressionWrapper,
    F,
    Model,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Round, TruncDay

from fleet.costs.domain import periods
from fleet.costs.domain.periods import Period
from fleet.costs.domain.results import GroupBy, GroupKey, Step
from fleet.costs.selectors import usage
from fleet.costs.selectors.ledger_filter import IDLE, label
from fleet.models import (
    LedgerDay,
    LedgerFourHours,
    LedgerMonth,
    LedgerRow,
    LedgerTeamDay,
    LedgerTeamHour,
)
from portal.core import clock

_MICROS = DecimalField(max_digits=30, decimal_places=6)


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that are summed. `team_slugs` None means the whole fleet, with unattributed pods and idle. Empty
    names do not filter.
    """

    team_slugs: Collection[str] | None
    models: Collection[str] = ()
    deployments: Collection[str] = ()

    @property
    def has_names(self) -> bool:
        return bool(self.models or self.deployments)


@dataclass(slots=True)
class SealedSum:
    """A sum of sealed rows. `at` is the start of the step, None where none was requested."""

    at: datetime | None
    key: GroupKey
    is_demo: bool
    amount: Decimal
    gpu_ms: int


def sums(
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy | None,
    *,
    step: Step | None = None,
    day_shift: timedelta = timedelta(0),
) -> Iterator[SealedSum]:
    """Sum the hours that start in [start, end). A group may come several times, or with nothing; None is all of them.
    `day_shift`: whole hours from an hour to the day that it belongs to, for steps of days.
    """
    count = len(list_group_columns(group_by))
    if day_shift and step is Step.DAY:
        queries = list(_of_shifted_days(scope, start, end, group_by, timezone(day_shift)))
    else:
        queries = list(group_sums(scope, start, end, group_by, step=step))
    # In one statement where all have the same columns: times are days of some, hours of others.
    for rows in queries if step else [queries[0].union(*queries[1:], all=True)]:
        for is_idle, is_demo, *values in rows:
            yield SealedSum(
                at=_step_of(values[count], step, day_shift) if step else None,
                key=usage.build_key(group_by, values[:count], is_idle=is_idle),
                is_demo=is_demo,
                amount=Decimal(values[-2]).scaleb(-6),
                gpu_ms=values[-1],
            )


def _of_shifted_days(
    scope: Scope, start: datetime, end: datetime, group_by: GroupBy | None, zone: timezone
) -> Iterator[QuerySet[Any, Any]]:
    """Days of another offset than UTC's are in no roll-up: they are added up from hours."""
    if group_by in (None, GroupBy.TEAM, GroupBy.CLUSTER) and not scope.has_names:
        hours = _of_teams(LedgerTeamHour.objects.filter(hour__gte=start, hour__lt=end), scope)
        yield _summed(hours.annotate(at=TruncDay("hour", tzinfo=zone)), group_by, "at")
        return
    rows = rows_in(scope, start, end)
    yield _of_rows(rows, group_by, Step.DAY, zone)


def group_sums(
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy | None,
    *,
    step: Step | None = None,
    with_rows: bool = False,
) -> Iterator[QuerySet[Any, Any]]:
    """The queries whose rows together are the sums: idle, demo, the names of the group, the time where a
    step was requested, micro-dollars and GPU milliseconds. With rows: those of the ledger as they are, for
    a statement that adds them up; PostgreSQL would sort them for sums of their own. Without, a group that is only
    in what is taken off a month again comes out as nothing.
    """
    period = Period(None, [(start, end)])
    if step is not Step.HOUR:
        period = periods.cut(start, end, now=clock.now())
    by_team = group_by in (None, GroupBy.TEAM, GroupBy.CLUSTER) and not scope.has_names
    if period.days:
        yield from _of_days(
            scope, period.days, group_by, step, by_team=by_team, with_rows=with_rows
        )
    for first, last in period.hours:
        if by_team:
            hours = LedgerTeamHour.objects.filter(hour__gte=first, hour__lt=last)
            yield _summed(_of_teams(hours, scope), group_by, "hour" if step else "")
            continue
        whole = None
        if step is not Step.HOUR:
            whole = periods.four_hours_in(first, last, now=clock.now())
        if whole:
            sums = LedgerFourHours.objects.filter(start__gte=whole[0], start__lt=whole[1])
            sums = _named(_of_teams(sums, scope), scope)
            is_one = with_rows and whole[1] - whole[0] == periods.FOUR_HOURS
            names = "start" if step else ""
            yield _unsummed(sums, group_by) if is_one else _summed(sums, group_by, names)
        for begin, until in periods.beside((first, last), whole):
            rows = rows_in(scope, begin, until)
            yield columns_of_rows(rows, group_by) if with_rows else _of_rows(rows, group_by, step)


def _of_days(
    scope: Scope,
    days: tuple[date, date],
    group_by: GroupBy | None,
    step: Step | None,
    *,
    by_team: bool,
    with_rows: bool,
) -> Iterator[QuerySet[Any, Any]]:
    cover = periods.Cover(None, [days])
    if not (by_team or step):
        today = clock.now().astimezone(UTC).date()
        cover = periods.cover(days, today=today, may_take_off=not with_rows)
    if cover.months:
        first, last = cover.months
        rows: QuerySet[Any] = LedgerMonth.objects.filter(month__gte=first, month__lt=last)
        yield _summed(_named(_of_teams(rows, scope), scope), group_by, "")
    model: type[Model] = LedgerTeamDay if by_team else LedgerDay
    for spans, sign in ((cover.days, 1), (cover.taken_off, -1)):
        for first, last in spans:
            rows = model._default_manager.filter(day__gte=first, day__lt=last)
            rows = _named(_of_teams(rows, scope), scope)
            is_one = with_rows and (last - first).days == 1
            names = "day" if step else ""
            yield (
                _unsummed(rows, group_by) if is_one else _summed(rows, group_by, names, sign=sign)
            )


def _named(rows: QuerySet[Any], scope: Scope) -> QuerySet[Any]:
    if scope.models:
        rows = rows.filter(model__in=scope.models)
    if scope.deployments:
        rows = rows.filter(deployment__in=scope.deployments)
    return rows


def _of_teams(rows: QuerySet[Any], scope: Scope) -> QuerySet[Any]:
    if scope.team_slugs is None:
        return rows
    return rows.filter(team_slug__in=scope.team_slugs, is_idle=False)


def _summed(
    rows: QuerySet[Any], group_by: GroupBy | None, time_name: str, *, sign: int = 1
) -> QuerySet[Any, tuple[Any, ...]]:
    times = (time_name,) if time_name else ()
    # PostgreSQL adds integers to a decimal, which takes longer to read.
    cost, ms = (
        Cast(Sum(n) * sign if sign < 0 else Sum(n), BigIntegerField())
        for n in ("cost_micros", "gpu_milliseconds")
    )
    columns = rows.values_list("is_idle", "is_demo", *list_group_columns(group_by), *times)
    summed: QuerySet[Any, tuple[Any, ...]] = columns.annotate(cost=cost, ms=ms).order_by()
    return summed


def _unsummed(rows: QuerySet[Any], group_by: GroupBy | None) -> QuerySet[Any, tuple[Any, ...]]:
    """Return rows of one day, or of four hours, with the columns of `_summed`, for a statement that adds them up:
    PostgreSQL then sums once.
    """
    names = list_group_columns(group_by)
    return rows.values_list("is_idle", "is_demo", *names, "cost_micros", "gpu_milliseconds")


def columns_of_rows(
    rows: QuerySet[LedgerRow], group_by: GroupBy | None
) -> QuerySet[Any, tuple[Any, ...]]:
    """Return the rows with the columns of `grouped`, without a time."""
    cost = ExpressionWrapper(F("cost_amount") * 1_000_000, _MICROS)
    columns = _labelled(rows, group_by).annotate(cost=Cast(Round(cost), BigIntegerField()))
    return columns.values_list(
        "idle", "is_demo", *list_group_columns(group_by), "cost", "gpu_milliseconds"
    )


def _of_rows(
    rows: QuerySet[LedgerRow],
    group_by: GroupBy | None,
    step: Step | None,
    zone: timezone = UTC,
) -> QuerySet[Any, tuple[Any, ...]]:
    columns = _labelled(rows, group_by).annotate(
        at=TruncDay("hour", tzinfo=zone) if step is Step.DAY else Coalesce("hour", "hour")
    )
    times = ("at",) if step else ()
    # SQLite adds decimals as floating point.
    micros = Round(ExpressionWrapper(Sum("cost_amount") * 1_000_000, _MICROS))
    return (
        columns.values_list("idle", "is_demo", *list_group_columns(group_by), *times)
        .annotate(cost=Cast(micros, BigIntegerField()), ms=Sum("gpu_milliseconds"))
        .order_by()
    )


def _labelled(rows: QuerySet[LedgerRow], group_by: GroupBy | None) -> QuerySet[LedgerRow]:
    labels = {name: KT(f"workload_labels__{name}") for name in usage.grouping_labels(group_by)}
    idle = Case(When(IDLE, then=Value(True)), default=Value(False))  # noqa: FBT003  a column
    return rows.annotate(idle=idle, **labels)


def rows_in(scope: Scope, start: datetime, end: datetime) -> QuerySet[LedgerRow]:
    rows = LedgerRow.objects.filter(hour__gte=start, hour__lt=end)
    if scope.team_slugs is not None:
        rows = rows.filter(team_slug__in=scope.team_slugs).exclude(IDLE)
    for name, values in (("model", scope.models), ("deployment", scope.deployments)):
        if values:
            column = f"{name}_label"
            rows = rows.alias(**{column: label(name)})
            rows = rows.filter(**{f"{column}__in": values})
    return rows


def list_group_columns(group_by: GroupBy | None) -> tuple[str, ...]:
    if group_by is None:
        return ()
    if group_by is GroupBy.CLUSTER:
        return ("cluster_name",)
    return ("team_slug", *usage.grouping_labels(group_by))


def _step_of(at: date, step: Step, shift: timedelta) -> datetime:
    """Return the start of the step that a day, or an hour in it, belongs to."""
    if shift and step is Step.DAY and isinstance(at, datetime):
        return at.astimezone(UTC)
    if not isinstance(at, datetime):
        return datetime.combine(at, time(), tzinfo=UTC)
    return at.astimezone(UTC).replace(hour=0) if step is Step.DAY else at
