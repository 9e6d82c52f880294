"""What a revision costs, and what the team's month comes to with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deployments.preflight.domain.checks import Check, Cost
from deployments.preflight.selectors import quotas
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.costs.domain.forecast import hours_in_month_of, month_end_amount
from fleet.costs.selectors import costs
from fleet.gpus.domain import capacity_types
from portal.accounts.models import Team
from portal.core import clock
from portal.core.money import HOURS_PER_MONTH

_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A deployment whose running revision makes way. `overlap_seconds`: both run for about as long,
    as in a rollout; 0 where it changes in place or the new one takes over as soon as it is ready.
    """

    deployment_id: int
    overlap_seconds: int = 0


def cost_of(
    *,
    team: Team,
    spec: ServingSpec,
    shares: list[GpuShare],
    replaces: Replaced | None = None,
) -> Cost:
    """`shares` are what the cluster of the revision offers. `replaces` is the deployment whose
    running revision `spec` takes the place of: both are paid for only while a rollout runs.
    """
    share = share_for(shares, spec)
    each = share.usd_per_hour_amount if share else None
    at, spend = clock.now(), costs.month_to_date(team_slug=team.slug)
    spent = (spend.allocated_amount + spend.estimated_amount).quantize(_CENT)
    others = running_per_hour(
        team, without_deployment_id=replaces.deployment_id if replaces else None
    )
    overlap = _overlap(team, replaces)
    least, most = (_times(each, count * spec.nodes) for count in _replicas(spec))
    return Cost(
        per_hour=least,
        month_min=_month(least),
        month_max=_month(most),
        budget=team.monthly_budget_amount or None,
        spent=spent,
        forecast=_forecast(spent, _plus(others, least), overlap, replaces, at),
        price_source=_source(share),
        team_month_min=_month(_plus(others, least)),
        team_month_max=_month(_plus(others, most)),
        overlap_amount=_during(overlap, replaces),
        overlap_seconds=replaces.overlap_seconds if replaces else None,
    )


def share_for(shares: list[GpuShare], spec: ServingSpec) -> GpuShare | None:
    """With the price of the capacity that the spec requests: spot as spot, or not known."""
    size = (spec.instance_type, spec.gpu_resource, spec.gpus)
    alike = [share for share in shares if share.size == size]
    return next(iter(capacity.for_capacity(alike, spec.placement.capacity)), None)


def check_budget(cost: Cost) -> Check:
    """Going over the budget is the approver's decision, so it fails but does not refuse.

    The rest of this month says little of a change made on its last day: a whole month counts too.
    """
    if cost.budget is None:
        detail = "The team has no monthly budget."
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    if cost.forecast is None or cost.team_month_min is None or cost.team_month_max is None:
        detail = "A price is missing, so the monthly forecast is unknown."
        fix = "Ask a platform admin to load the price of this instance type and capacity type."
        return Check("Budget", ok=None, detail=detail, fix=fix, is_blocking=False)
    detail = (
        f"Forecast ${cost.forecast:,.2f} this month, ${cost.team_month_min:,.2f} in a full "
        f"month{_at_most(cost.team_month_min, cost.team_month_max)}, of ${cost.budget:,.2f}."
    )
    over = max(cost.forecast, cost.team_month_max) - cost.budget
    if over <= 0:
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    fix = f"Over by ${over:,.2f}. Use fewer replicas or a cheaper GPU, or let the approver decide."
    return Check("Budget", ok=False, detail=detail, fix=fix, is_blocking=False)


def running_per_hour(team: Team, *, without_deployment_id: int | None = None) -> Decimal | None:
    """Of everything the team wants now, at its fewest replicas.

    None as soon as one price is missing: a sum without it would look like the whole.
    """
    others = quotas.least_revisions_of(team, without_deployment_id=without_deployment_id)
    return _sum_of(others)


def _overlap(team: Team, replaces: Replaced | None) -> Decimal | None:
    """An hour of the revision that is replaced, while it still runs beside the new one."""
    if replaces is None or not replaces.overlap_seconds:
        return Decimal(0)
    own = quotas.least_revisions_of(team, only_deployment_id=replaces.deployment_id)
    return _sum_of(own)


def _sum_of(revisions: Iterable[tuple[int, ServingSpec]]) -> Decimal | None:
    total = Decimal(0)
    shares: dict[int, list[GpuShare]] = {}
    for cluster_id, spec in revisions:
        if cluster_id not in shares:
            shares[cluster_id] = capacity.list_shares(cluster_id=cluster_id)
        found = share_for(shares[cluster_id], spec)
        if found is None or found.usd_per_hour_amount is None:
            return None
        total += found.usd_per_hour_amount * spec.floor_replicas * spec.nodes
    return total


def _forecast(
    spent: Decimal,
    per_hour: Decimal | None,
    overlap: Decimal | None,
    replaces: Replaced | None,
    at: datetime,
) -> Decimal | None:
    steady = month_end_amount(spent_amount=spent, usd_per_hour_amount=per_hour, at=at)
    if steady is None or overlap is None:
        return None
    seconds = replaces.overlap_seconds if replaces else 0
    return (steady + overlap * hours_in_month_of(at, seconds=seconds)).quantize(_CENT)


def _during(overlap: Decimal | None, replaces: Replaced | None) -> Decimal | None:
    if replaces is None or overlap is None:
        return None
    return (overlap * replaces.overlap_seconds / 3600).quantize(_CENT)


def _replicas(spec: ServingSpec) -> tuple[int, int]:
    return spec.floor_replicas, spec.max_replicas


def _source(share: GpuShare | None) -> str:
    if share is None or share.usd_per_hour_amount is None:
        return ""
    is_listed = share.capacity_type in (capacity_types.ON_DEMAND, capacity_types.ANY)
    return share.price_source if is_listed else f"{share.price_source}, {share.capacity_type}"


def _times(each: Decimal | None, count: int) -> Decimal | None:
    return None if each is None else each * count


def _plus(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    return None if left is None or right is None else left + right


def _month(per_hour: Decimal | None) -> Decimal | None:
    return None if per_hour is None else (per_hour * HOURS_PER_MONTH).quantize(_CENT)


def _at_most(least: Decimal, most: Decimal) -> str:
    return f" (${most:,.2f} at max replicas)" if most != least else ""
