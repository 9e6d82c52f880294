"""What a revision costs, and what the team's month comes to with it."""

from __future__ import annotations

from decimal import Decimal

from deployments.domain.preflight import Check, Cost
from deployments.domain.specs import ServingSpec
from deployments.selectors import quotas
from fleet.domain.forecast import month_end_amount
from fleet.selectors import capacity, costs
from fleet.selectors.capacity import GpuShare
from portal.accounts.models import Team
from portal.core import clock
from portal.core.money import HOURS_PER_MONTH

_CENT = Decimal("0.01")


def cost_of(
    *,
    team: Team,
    spec: ServingSpec,
    shares: list[GpuShare],
    without_deployment_id: int | None = None,
) -> Cost:
    """`shares` are what the cluster of the revision offers. Leave out the deployment whose running
    revision `spec` takes the place of: it is paid for once.
    """
    share = share_for(shares, spec)
    each = share.usd_per_hour_amount if share else None
    spend = costs.month_to_date(team_slug=team.slug)
    spent = (spend.allocated_amount + spend.estimated_amount).quantize(_CENT)
    return Cost(
        per_hour=None if each is None else each * spec.floor_replicas * spec.nodes,
        month_min=_month(each, spec.floor_replicas * spec.nodes),
        month_max=_month(each, spec.max_replicas * spec.nodes),
        budget=team.monthly_budget_amount or None,
        spent=spent,
        forecast=_forecast(team, spent, each, spec, without_deployment_id),
        price_source=share.price_source if share else "",
    )


def share_for(shares: list[GpuShare], spec: ServingSpec) -> GpuShare | None:
    for share in shares:
        wanted = (spec.instance_type, spec.gpu_resource, spec.gpus)
        if (share.instance_type, share.gpu_resource, share.gpus) == wanted:
            return share
    return None


def check_budget(cost: Cost) -> Check:
    """Going over the budget is the approver's decision, so it is told but does not refuse."""
    if cost.budget is None:
        detail = "The team has no monthly budget, so there is nothing to compare with."
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    if cost.forecast is None:
        detail = "The price is not known, so neither is the month's forecast."
        return Check("Budget", ok=None, detail=detail, is_blocking=False)
    over = cost.forecast - cost.budget
    detail = f"Forecast ${cost.forecast:,.2f} of ${cost.budget:,.2f} this month."
    if over <= 0:
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    fix = f"Over by ${over:,.2f}: use fewer replicas or a cheaper GPU, or let the approver decide."
    return Check("Budget", ok=False, detail=detail, fix=fix, is_blocking=False)


def _month(each: Decimal | None, replicas: int) -> Decimal | None:
    return None if each is None else (each * replicas * HOURS_PER_MONTH).quantize(_CENT)


def running_per_hour(team: Team, *, without_deployment_id: int | None = None) -> Decimal | None:
    """Of everything the team wants now, at its fewest replicas.

    None as soon as one price is missing: a sum without it would look like the whole.
    """
    total = Decimal(0)
    shares: dict[int, list[GpuShare]] = {}
    others = quotas.least_revisions_of(team, without_deployment_id=without_deployment_id)
    for cluster_id, other in others:
        if cluster_id not in shares:
            shares[cluster_id] = capacity.list_shares(cluster_id=cluster_id)
        found = share_for(shares[cluster_id], other)
        if found is None or found.usd_per_hour_amount is None:
            return None
        total += found.usd_per_hour_amount * other.floor_replicas * other.nodes
    return total


def _forecast(
    team: Team,
    spent: Decimal,
    each: Decimal | None,
    spec: ServingSpec,
    without_deployment_id: int | None,
) -> Decimal | None:
    running = running_per_hour(team, without_deployment_id=without_deployment_id)
    if each is None or running is None:
        return None
    return month_end_amount(
        spent_amount=spent,
        usd_per_hour_amount=running + each * spec.floor_replicas * spec.nodes,
        at=clock.now(),
    )
