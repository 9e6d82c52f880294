"""Costs over time: one point for each group and hour or day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from fleet.costs.domain.results import OTHERS, CostPoint, GroupBy, GroupKey, Step
from fleet.costs.selectors import costs, open_hours, sealed
from fleet.costs.selectors.costs import Teams
from fleet.costs.selectors.open_hours import Unsealed
from fleet.costs.selectors.sealed import Scope
from fleet.gpus.domain.intervals import day_shift, whole_hours

_Amounts = dict[tuple[datetime, GroupKey, bool], Decimal]


def series(
    *,
    team_slugs: Teams,
    start: datetime,
    end: datetime,
    group_by: GroupBy = GroupBy.TEAM,
    step: Step = Step.DAY,
    deployment: str = "",
    named: Collection[GroupKey] | None = None,
    unsealed: Unsealed | None = None,
    day_offset: timedelta = timedelta(0),
) -> list[CostPoint]:
    """Return the points ordered by time, then group. A group without cost at a time has no point. Groups that are
    not `named` are summed up as OTHERS; None names all. `day_offset` says whose days, as an offset from UTC.
    """
    start, end = whole_hours(start, end)
    scope = Scope(team_slugs, deployments=[deployment] if deployment else ())
    unsealed = unsealed or open_hours.read(team_slugs, start, end)
    period = _Period(start, end, step, unsealed, day_shift(day_offset))
    if named is None:
        return _points(_amounts(scope, period, group_by))
    if group_by is GroupBy.CLUSTER:
        return _points(_merged(_amounts(scope, period, group_by), named))
    of_named = _amounts(costs.narrow(scope, named), period, group_by) if named else {}
    return _points(_with_others(of_named, _amounts(scope, period, None), frozenset(named)))


@dataclass(frozen=True, slots=True)
class _Period:
    start: datetime
    end: datetime
    step: Step
    unsealed: Unsealed
    # From an hour to the day that it belongs to.
    shift: timedelta


def _amounts(scope: Scope, period: _Period, group_by: GroupBy | None) -> _Amounts:
    amounts: _Amounts = defaultdict(Decimal)
    shift = period.shift
    for one in sealed.sums(
        scope, period.start, period.end, group_by, step=period.step, day_shift=shift
    ):
        if one.at is not None:
            amounts[one.at, one.key, False] += one.amount
    for open_sum in open_hours.sums(period.unsealed, scope, group_by):
        hour = open_sum.hour.astimezone(UTC)
        at = (hour + shift).replace(hour=0) - shift if period.step is Step.DAY else hour
        amounts[at, open_sum.key, True] += open_sum.amount
    return amounts


def _merged(amounts: _Amounts, named: Collection[GroupKey]) -> _Amounts:
    merged: _Amounts = defaultdict(Decimal)
    for (at, key, is_estimated), amount in amounts.items():
        shown = key if key.is_idle or key in named else OTHERS
        merged[at, shown, is_estimated] += amount
    return merged


def _with_others(of_named: _Amounts, whole: _Amounts, named: frozenset[GroupKey]) -> _Amounts:
    """Keep the amounts of the named groups, and attribute the rest of `whole` to the others. Idle stays apart."""
    amounts: _Amounts = defaultdict(Decimal)
    for (at, key, is_estimated), amount in of_named.items():
        if key in named:
            amounts[at, key, is_estimated] += amount
            amounts[at, OTHERS, is_estimated] -= amount
    for (at, key, is_estimated), amount in whole.items():
        amounts[at, key if key.is_idle else OTHERS, is_estimated] += amount
    return {point: amount for point, amount in amounts.items() if amount or point[1] != OTHERS}


def _points(amounts: _Amounts) -> list[CostPoint]:
    points: Iterable[CostPoint] = (
        CostPoint(at, key, amount, is_estimated)
        for (at, key, is_estimated), amount in amounts.items()
    )
    return sorted(points, key=lambda p: (p.at, p.key.is_idle, p.key.label, p.is_estimated))
