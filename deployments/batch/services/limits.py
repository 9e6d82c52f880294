"""What a batch job may use: the quota of its team, and what its budget has left."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.db.models import QuerySet

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import COMMITTED
from deployments.models import BatchJob
from deployments.preflight.selectors import quotas
from deployments.preflight.services import cost
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.costs.domain.forecast import month_end_amount
from fleet.costs.selectors import costs
from portal.accounts.models import Team
from portal.core import clock
from portal.core.errors import Invalid

_CENT: Final = Decimal("0.01")
_OFFERED: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """`amount` is the most that the pods cost until the deadline, None if the price is not known.
    `why_approval` is empty where the budget has room for it.
    """

    usd_per_hour_amount: Decimal | None
    amount: Decimal | None
    why_approval: str


def check(
    team: Team, cluster_id: int, settings: BatchSettings, *, without: BatchJob | None = None
) -> Limits:
    """Raises Invalid for what the cluster does not offer, the quota, and a binding budget."""
    share = _share(cluster_id, settings)
    others = BatchJob.objects.filter(team=team, state__in=COMMITTED)
    if without is not None:
        others = others.exclude(pk=without.pk)
    _require_quota(team, settings, others)
    per_hour = share.usd_per_hour_amount
    if per_hour is None:
        why = "The price of its nodes is not known."
        return Limits(None, None, why)
    per_hour *= settings.workers
    amount = (per_hour * settings.hours).quantize(_CENT)
    return Limits(per_hour, amount, _why_approval(team, amount, others))


def _share(cluster_id: int, settings: BatchSettings) -> GpuShare:
    size = (settings.instance_type, settings.gpu_resource, 1)
    shares = capacity.list_shares(cluster_id=cluster_id)
    alike = capacity.for_capacity([s for s in shares if s.size == size], settings.capacity)
    if alike:
        return alike[0]
    offered = sorted({f"{s.instance_type} with {s.gpu_resource}" for s in shares if s.gpus == 1})
    listed = ", ".join(offered[:_OFFERED]) or "none"
    problem = f"The cluster has no {settings.instance_type} with {settings.gpu_resource}. Offered: {listed}."
    raise Invalid(problem, fields=dict.fromkeys(("instance_type", "gpu_resource"), problem))


def _require_quota(team: Team, settings: BatchSettings, others: QuerySet[BatchJob]) -> None:
    of_deployments = quotas.committed_gpus(team, quotas.list_running(team))
    of_jobs = sum(int(pods.get("workers", 1)) for pods in others.values_list("pods", flat=True))
    left = max(0, team.quota_gpus - of_deployments - of_jobs)
    if settings.workers > left:
        problem = (
            f"{settings.workers} GPUs are needed and {left} of {team.quota_gpus} are left for {team.slug}. Use "
            "fewer workers, wait, or ask a platform admin for more."
        )
        raise Invalid(problem, fields={"workers": problem})


def _why_approval(team: Team, amount: Decimal, others: QuerySet[BatchJob]) -> str:
    budget = team.monthly_budget_amount
    if not budget:
        return ""
    running = cost.sum_per_hour(quotas.list_running(team), cost.SharesByCluster())
    spent = costs.spent_this_month(team_slug=team.slug).total_amount.quantize(_CENT)
    forecast = month_end_amount(spent_amount=spent, usd_per_hour_amount=running, at=clock.now())
    limits = list(others.values_list("cost_limit_amount", flat=True))
    if forecast is None or None in limits:
        return "The month's forecast is not known, because a price is missing."
    total = forecast + sum((limit for limit in limits if limit is not None), Decimal(0)) + amount
    if total <= budget:
        return ""
    described = (
        f"It can cost ${amount:,.2f}; with it the month comes to ${total:,.2f} of ${budget:,.2f}."
    )
    if team.is_budget_binding:
        problem = (
            f"{described} Use fewer workers or hours, spot nodes, or ask a platform admin for a larger "
            "budget."
        )
        raise Invalid(problem, fields={"workers": problem})
    return described
