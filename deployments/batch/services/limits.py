"""Limits of a batch job: the quota of its team, and what is left of its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.db.models import QuerySet

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.models import BatchJob
from deployments.preflight.selectors import batch_jobs, quotas
from deployments.preflight.selectors.quotas import RunningRevision
from deployments.preflight.services import cost
from deployments.spec.domain.placement import catalogue
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.costs.domain.forecast import month_end_amount
from fleet.costs.selectors import costs
from fleet.gpus.domain import offers
from portal.accounts.models import Team
from portal.core import clock
from portal.core.definitions.counts import format_count
from portal.core.definitions.figures import format_money
from portal.core.errors import Invalid

_CENT: Final = Decimal("0.01")
_OFFERED: Final = 8
_BY_CLAIM: Final = " by ResourceClaim (device_claims)"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of all workers per hour, and at most until the deadline. None if the price is not known."""

    usd_per_hour_amount: Decimal | None
    amount: Decimal | None


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The price of a job and why it needs approval. `why_approval` is empty if the budget has room for the job."""

    price: Price
    why_approval: str

    @property
    def amount(self) -> Decimal | None:
        return self.price.amount


def check(
    team: Team, cluster_id: int, settings: BatchSettings, *, without: BatchJob | None = None
) -> JobLimits:
    """Check the job against its cluster, quota and budget. Raises Invalid for what the cluster does not offer, the
    quota, and a binding budget.
    """
    price = price_of(_shares_for(cluster_id, settings), settings)
    return JobLimits(price, require(team, settings, price, without=without))


def _shares_for(cluster_id: int, settings: BatchSettings) -> Sequence[GpuShare]:
    """Return the GPUs of the instance type, or all, to name them, if the cluster has none of it."""
    of_type = capacity.list_shares(cluster_id=cluster_id, instance_types=[settings.instance_type])
    return offers.drop_neuron(of_type) or offers.drop_neuron(
        capacity.list_shares(cluster_id=cluster_id)
    )


def price_of(
    shares: Sequence[GpuShare], settings: BatchSettings, *, capacity_type: str = ""
) -> Price:
    """Return the price of the workers, for `capacity_type` instead of the requested one if it is given. Raises
    Invalid if `shares` lack the GPU.
    """
    size = (settings.instance_type, settings.gpu_resource, 1)
    placement = settings.placement
    if capacity_type:
        placement = placement.on(capacity_type)
    share = next((s for s in catalogue.filter_shares(shares, placement) if s.size == size), None)
    if share is None:
        raise _not_offered(shares, settings)
    if share.usd_per_hour_amount is None:
        return Price(None, None)
    per_hour = share.usd_per_hour_amount * settings.workers
    return Price(per_hour, (per_hour * settings.hours).quantize(_CENT))


def _not_offered(shares: Sequence[GpuShare], settings: BatchSettings) -> Invalid:
    """Build the error that names what is offered, of both kinds: most often only `device_claims` is wrong."""
    offered = sorted(
        {
            f"{s.instance_type} with {s.gpu_resource}{_BY_CLAIM if s.is_claimed else ''}"
            for s in shares
            if s.gpus == 1
        }
    )
    listed = ", ".join(offered[:_OFFERED]) or "none"
    how = _BY_CLAIM if settings.device_claims else ""
    problem = f"The cluster has no {settings.instance_type} with {settings.gpu_resource}{how}. Offered: {listed}."
    return Invalid(problem, fields=dict.fromkeys(("instance_type", "gpu_resource"), problem))


def require(
    team: Team, settings: BatchSettings, price: Price, *, without: BatchJob | None = None
) -> str:
    """Return why a lead has to decide, or nothing. Raises Invalid for the quota and a binding budget."""
    running = quotas.list_running(team)
    require_quota(team, settings, without=without, running=running)
    if price.amount is None:
        return "The price of its nodes is not known."
    return _why_approval(team, price.amount, running, without)


def require_quota(
    team: Team,
    settings: BatchSettings,
    *,
    without: BatchJob | None = None,
    running: Sequence[RunningRevision] | None = None,
) -> None:
    """Check the quota against deployments, other jobs and those that wait for approval. Raises Invalid.

    `running` are the team's running revisions, if they were read already.
    """
    running = quotas.list_running(team) if running is None else running
    job_id = without.pk if without else None
    committed = quotas.committed_gpus(team, running, without_job_id=job_id)
    waiting = _waiting(team, without).values_list("pods", flat=True)
    committed += sum(int(pods.get("workers", 1)) for pods in waiting)
    left = max(0, team.quota_gpus - committed)
    if settings.workers > left:
        be = "is" if settings.workers == 1 else "are"
        problem = (
            f"{format_count(settings.workers, 'GPU')} {be} needed and {left} of {team.quota_gpus} are left for {team.slug}. Use "
            "fewer workers, wait, or ask a platform admin for more."
        )
        raise Invalid(problem, fields={"workers": problem})


def _waiting(team: Team, without: BatchJob | None) -> QuerySet[BatchJob]:
    rows = BatchJob.objects.filter(team=team, state=BatchState.SUBMITTED)
    return rows.exclude(pk=without.pk) if without else rows


def _why_approval(
    team: Team, amount: Decimal, running: Sequence[RunningRevision], without: BatchJob | None
) -> str:
    budget = team.monthly_budget_amount
    if not budget:
        return ""
    at = clock.now()
    per_hour = cost.sum_per_hour(running, cost.SharesByCluster())
    spent = costs.sum_spend_this_month(team_slug=team.slug).total_amount.quantize(_CENT)
    forecast = month_end_amount(spent_amount=spent, usd_per_hour_amount=per_hour, at=at)
    job_id = without.pk if without else None
    of_jobs = batch_jobs.sum_held(team, at=at, without_job_id=job_id).left_amount
    limits = list(_waiting(team, without).values_list("cost_limit_amount", flat=True))
    if forecast is None or of_jobs is None or None in limits:
        return "The month's forecast is not known, because a price is missing."
    others = sum((limit for limit in limits if limit is not None), of_jobs)
    total = forecast + others + amount
    if total <= budget:
        return ""
    described = f"It can cost {format_money(amount)}; with it the month comes to {format_money(total)} of {format_money(budget)}."
    if team.is_budget_binding:
        problem = (
            f"{described} Use fewer workers or hours, spot nodes, or ask a platform admin for a larger "
            "budget."
        )
        raise Invalid(problem, fields={"workers": problem})
    return described
