"""Sums of sealed ledger rows by group, read from the roll-ups where a period has whole days.

What is left of a period at its ends is read from hours: of teams and clusters by their own roll-up, of
other groups from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Case, Model, Q, QuerySet, Sum, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, TruncDay

from fleet.costs.domain.results import GroupBy, GroupKey, Step
from fleet.costs.selectors import usage
from fleet.costs.selectors.ledger_rows import IDLE
from fleet.models import LedgerDay, LedgerRow, LedgerTeamDay, LedgerTeamHour
from portal.core import clock
from portal.core.money import MICRO

_DAY = timedelta(days=1)
_LABELS = ("model", "deployment", "revision")


@dataclass(frozen=True, slots=True)
class Scope:
    """`team_slugs` None: the whole fleet, with unattributed pods and idle. Empty names do not filter."""

    team_slugs: Collection[str] | None
    models: Collection[str] = ()
    deployments: Collection[str] = ()

    @property
    def has_names(self) -> bool:
        return bool(self.models or self.deployments)


@dataclass(frozen=True, slots=True)
class SealedSum:
    """`at` is the start of the step, None where none was requested."""

    at: datetime | None
    key: GroupKey
    is_demo: bool
    amount: Decimal
    gpu_ms: int


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days [first, last), and the spans of hours beside them."""

    days: tuple[date, date] | None
    hours: Sequence[tuple[datetime, datetime]]


def cut(start: datetime, end: datetime, *, now: datetime) -> Period:
    """The day of `now` counts as whole where the period lasts until then: no later hour is sealed."""
    first, last = _ceil(start), (_ceil(end) if end >= now else _floor(end))
    if first >= last:
        return Period(None, [(start, end)])
    spans = [(start, first), (last, end)]
    return Period((first.date(), last.date()), [(a, b) for a, b in spans if a < b])


def sums(
    scope: Scope, start: datetime, end: datetime, group_by: GroupBy, *, step: Step | None = None
) -> Iterator[SealedSum]:
    """Of the hours that start in [start, end). A group may come several times."""
    period = Period(None, [(start, end)])
    if step is not Step.HOUR:
        period = cut(start, end, now=clock.now())
    by_team = group_by in (GroupBy.TEAM, GroupBy.CLUSTER) and not scope.has_names
    if period.days:
        yield from _of_days(scope, period.days, group_by, step, by_team=by_team)
    for span in period.hours:
        if by_team:
            yield from _of_team_hours(scope, span, group_by, step)
        else:
            yield from _of_rows(scope, span, group_by, step)


def _of_days(
    scope: Scope, days: tuple[date, date], group_by: GroupBy, step: Step | None, *, by_team: bool
) -> Iterator[SealedSum]:
    model: type[Model] = LedgerTeamDay if by_team else LedgerDay
    rows = model._default_manager.filter(day__gte=days[0], day__lt=days[1])
    if scope.models:
        rows = rows.filter(model__in=scope.models)
    if scope.deployments:
        rows = rows.filter(deployment__in=scope.deployments)
    names = _names(group_by)
    times = ("day",) if step else ()
    for row in _summed(_of_teams(rows, scope), (*times, "is_idle", "is_demo", *names)):
        at = datetime.combine(row["day"], time(), tzinfo=UTC) if step else None
        yield _sum_of(row, group_by, at)


def _of_team_hours(
    scope: Scope, span: tuple[datetime, datetime], group_by: GroupBy, step: Step | None
) -> Iterator[SealedSum]:
    rows = _of_teams(LedgerTeamHour.objects.filter(hour__gte=span[0], hour__lt=span[1]), scope)
    times = ("hour",) if step else ()
    for row in _summed(rows, (*times, "is_idle", "is_demo", *_names(group_by))):
        yield _sum_of(row, group_by, _step_of(row["hour"], step) if step else None)


def _of_teams(rows: QuerySet[Any], scope: Scope) -> QuerySet[Any]:
    if scope.team_slugs is None:
        return rows
    return rows.filter(team_slug__in=scope.team_slugs, is_idle=False)


def _summed(rows: QuerySet[Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    grouped = rows.values_list(*names).annotate(cost=Sum("cost_micros"), ms=Sum("gpu_milliseconds"))
    columns = (*names, "cost", "ms")
    for values in grouped.order_by():
        yield dict(zip(columns, values, strict=True))


def _sum_of(row: dict[str, Any], group_by: GroupBy, at: datetime | None) -> SealedSum:
    amount = (Decimal(row["cost"]) * MICRO).quantize(MICRO)
    key = _key_of(row, group_by)
    return SealedSum(at, key, is_demo=row["is_demo"], amount=amount, gpu_ms=int(row["ms"]))


def _of_rows(
    scope: Scope, span: tuple[datetime, datetime], group_by: GroupBy, step: Step | None
) -> Iterator[SealedSum]:
    rows = rows_in(scope, *span)
    names = _names(group_by)
    needed = {name: KT(f"workload_labels__{name}") for name in names if name in _LABELS}
    columns = rows.annotate(
        idle=Case(When(IDLE, then=Value(True)), default=Value(False)),  # noqa: FBT003  a column
        at=TruncDay("hour") if step is Step.DAY else Coalesce("hour", "hour"),
        **needed,
    )
    times = ("at",) if step else ()
    grouped = columns.values("idle", "is_demo", *times, *names).annotate(
        amount=Sum("cost_amount"), ms=Sum("gpu_milliseconds")
    )
    for row in grouped.order_by():
        key = _key_of(row | {"is_idle": row["idle"]}, group_by)
        # SQLite adds decimals as floating point.
        amount = row["amount"].quantize(MICRO)
        at = row["at"] if step else None
        yield SealedSum(at, key, is_demo=row["is_demo"], amount=amount, gpu_ms=row["ms"])


def rows_in(scope: Scope, start: datetime, end: datetime) -> QuerySet[LedgerRow]:
    rows = LedgerRow.objects.filter(hour__gte=start, hour__lt=end)
    if scope.team_slugs is not None:
        rows = rows.filter(team_slug__in=scope.team_slugs).exclude(IDLE)
    for name, values in (("model", scope.models), ("deployment", scope.deployments)):
        if values:
            wanted = Q()
            for value in values:
                wanted |= Q(**{f"workload_labels__{name}": value})
            rows = rows.filter(wanted)
    return rows


def _names(group_by: GroupBy) -> tuple[str, ...]:
    if group_by is GroupBy.CLUSTER:
        return ("cluster_name",)
    return ("team_slug", *usage.grouping_labels(group_by))


def _key_of(row: dict[str, Any], group_by: GroupBy) -> GroupKey:
    return usage.key_for(
        group_by,
        team_slug=row.get("team_slug", ""),
        labels=row,
        cluster_name=row.get("cluster_name", ""),
        is_idle=row["is_idle"],
    )


def _step_of(hour: datetime, step: Step) -> datetime:
    return hour.astimezone(UTC).replace(hour=0) if step is Step.DAY else hour


def _floor(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _ceil(at: datetime) -> datetime:
    floor = _floor(at)
    return floor if floor == at else floor + _DAY
