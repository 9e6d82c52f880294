"""Why costs changed from the period before, by deployment.

Only the most expensive deployments of both periods are read by name, all others are one group: a page of
thousands of deployments reads a few.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Min

from fleet.costs.domain.cost_changes import NOTHING, CostChange, PeriodCost, split_difference
from fleet.costs.domain.results import OTHERS, GroupBy, GroupKey
from fleet.costs.selectors import open_hours, ranking
from fleet.costs.selectors.costs import Teams, narrow
from fleet.costs.selectors.open_hours import Unsealed
from fleet.costs.selectors.ranking import GroupTotal, Ranking
from fleet.costs.selectors.sealed import Scope
from fleet.gpus.domain.intervals import whole_hours
from fleet.models import LedgerTeamHour

# Of each of the two periods.
NAMED: Final = 40
_ALL_SEALED: Final = Unsealed((), (), {})
_Costs = dict[GroupKey, PeriodCost]


def explain(
    *,
    team_slugs: Teams,
    start: datetime,
    end: datetime,
    deployment: str = "",
    has_idle: bool = False,
    unsealed: Unsealed | None = None,
) -> CostChange:
    """Explain the difference between [start, end) and the period of equal length before it. With `has_idle`, both
    include the fleet's idle cost. A deployment's name limits all of it to that one.
    """
    start, end = whole_hours(start, end)
    before_start = start - (end - start)
    scope = Scope(team_slugs, deployments=[deployment] if deployment else ())
    # As in the change of the table, the period before is that of its sealed hours.
    before = _Period(scope, before_start, start, _ALL_SEALED)
    ranked_before = before.rank()
    if _sum_all(ranked_before, has_idle=has_idle).is_nothing:
        return CostChange(before_start, start, end)
    now = _Period(scope, start, end, unsealed or open_hours.read(team_slugs, start, end))
    ranked = (ranked_before, now.rank())
    totals = [_sum_all(one, has_idle=has_idle) for one in ranked]
    is_price_missing = any(_misses_price(one, has_idle=has_idle) for one in ranked)
    parts = []
    if not is_price_missing:
        names = {total.key for one in ranked for total in one.page}
        sides = (before.read_costs(ranked[0], names), now.read_costs(ranked[1], names))
        idle = [_costs_by_group(one.idle) if has_idle else {} for one in ranked]
        parts = split_difference(sides[0] | idle[0], sides[1] | idle[1])
    return CostChange(
        before_start=before_start,
        start=start,
        end=end,
        before_amount=totals[0].amount,
        now_amount=totals[1].amount,
        has_earlier_data=True,
        data_from=_data_from(before_start),
        is_price_missing=is_price_missing,
        parts=tuple(parts),
    )


@dataclass(frozen=True, slots=True)
class _Period:
    scope: Scope
    start: datetime
    end: datetime
    unsealed: Unsealed

    def rank(self) -> Ranking:
        return self._rank(self.scope, NAMED)

    def read_costs(self, ranked: Ranking, names: set[GroupKey]) -> _Costs:
        """Return the costs of the named groups, and of all others as one."""
        costs = _costs_by_group(ranked.page)
        missing = names - costs.keys()
        if missing and ranked.held_count > len(ranked.page):
            totals = self._rank(narrow(self.scope, missing), None).page
            costs |= _costs_by_group(total for total in totals if total.key in missing)
        others = _sum_all(ranked, has_idle=False) - sum(costs.values(), NOTHING)
        return costs if others.is_nothing else {**costs, OTHERS: others}

    def _rank(self, scope: Scope, limit: int | None) -> Ranking:
        return ranking.rank(
            scope, self.start, self.end, GroupBy.DEPLOYMENT, self.unsealed, limit=limit
        )


def _data_from(before_start: datetime) -> datetime | None:
    """Return the first hour of the ledger if it is later than the start of the period before."""
    first = LedgerTeamHour.objects.aggregate(first=Min("hour"))["first"]
    return first if first and first > before_start else None


def _costs_by_group(totals: Iterable[GroupTotal]) -> _Costs:
    return {total.key: PeriodCost(total.amount, total.gpu_ms) for total in totals}


def _sum_all(ranked: Ranking, *, has_idle: bool) -> PeriodCost:
    shown = [ranked.held, *(ranked.idle if has_idle else ())]
    return sum((PeriodCost(one.amount, one.gpu_ms) for one in shown), NOTHING)


def _misses_price(ranked: Ranking, *, has_idle: bool) -> bool:
    shown = [ranked.held, *(ranked.idle if has_idle else ())]
    return any(one.unpriced_ms > 0 for one in shown)
