"""Estimate the cost of a revision, and the team's monthly total with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from deployments.preflight.domain.checks import Check, Cost
from deployments.preflight.selectors import batch_jobs
from deployments.preflight.selectors.quotas import RunningRevision
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.costs.domain.forecast import count_hours_in_month, month_end_amount
from fleet.costs.selectors import costs
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from fleet.gpus.selectors import prices
from portal.accounts.models import Team
from portal.core import clock
from portal.core.definitions.counts import format_count
from portal.core.definitions.figures import format_money

CONSOLIDATION: Final = "Consolidation"


@dataclass(frozen=True, slots=True)
class ReplacedDeployment:
    """The deployment whose running revision is replaced.

    `overlap_seconds` is about how long both revisions run, as in a rollout; 0 if the revision
    changes in place or the new one takes over as soon as it is ready.
    """

    deployment_id: int
    overlap_seconds: int = 0


class SharesByCluster:
    """The GPU shares of clusters, each read once."""

    def __init__(self, known: Mapping[int, Sequence[GpuShare]] | None = None) -> None:
        self._known = dict(known or {})

    def list_shares(self, cluster_id: int) -> Sequence[GpuShare]:
        if cluster_id not in self._known:
            self._known[cluster_id] = capacity.list_shares(cluster_id=cluster_id)
        return self._known[cluster_id]


def estimate_cost(
    *,
    team: Team,
    spec: ServingSpec,
    offered: Sequence[GpuShare],
    running: Sequence[RunningRevision],
    shares: SharesByCluster,
    replaces: ReplacedDeployment | None = None,
    baseline: ServingSpec | None = None,
) -> Cost:
    """Estimate the cost of a spec. `offered` are the shares of the cluster, `running` what the team runs now.
    The revision of `replaces`, and a baseline, are paid for in addition only while a rollout runs.
    """
    share = find_gpu_share(offered, spec)
    each = share.usd_per_hour_amount if share else None
    at, spend = clock.now(), costs.sum_spend_this_month(team_slug=team.slug)
    of_jobs = batch_jobs.sum_held(team, at=at).left_amount
    spent = spend.total_amount.quantize(CENT)
    replaced_id = replaces.deployment_id if replaces else None
    own = [revision for revision in running if revision.deployment_id == replaced_id]
    others = sum_per_hour([r for r in running if r.deployment_id != replaced_id], shares)
    beside = (
        [RunningRevision(0, own[0].deployment_id, own[0].cluster_id, baseline)]
        if baseline and own
        else []
    )
    overlaps = replaces is not None and replaces.overlap_seconds > 0
    overlap = sum_per_hour([*own, *beside], shares) if overlaps else Decimal(0)
    minimum, maximum = (_multiply(each, count * spec.nodes) for count in _replicas(spec))
    cheapest = _cheapest(find_gpu_shares(offered, spec))
    least, most = (_multiply(cheapest, count * spec.nodes) for count in _replicas(spec))
    return Cost(
        per_hour=minimum,
        cheapest_per_hour=least,
        cheapest_month_min=_per_month(least),
        cheapest_month_max=_per_month(most),
        month_min=_per_month(minimum),
        month_max=_per_month(maximum),
        budget=team.monthly_budget_amount or None,
        spent=spent,
        forecast=_add(_forecast(spent, _add(others, minimum), overlap, replaces, at), of_jobs),
        price_source=_price_source(share),
        team_month_min=_per_month(_add(others, minimum)),
        team_month_max=_per_month(_add(others, maximum)),
        replaced_month_max=_per_month(_sum_max(own, shares)),
        overlap_amount=_overlap_amount(overlap, replaces),
        overlap_seconds=replaces.overlap_seconds if replaces else None,
    )


def find_gpu_share(shares: Sequence[GpuShare], spec: ServingSpec) -> GpuShare | None:
    """Return the dearest of `find_gpu_shares`: budgets and approvals count it. None where one is not offered:
    what it costs is not known, and may be more.
    """
    offered = find_gpu_shares(shares, spec)
    return None if None in offered else max(filter(None, offered), key=_dearness)


def find_gpu_shares(shares: Sequence[GpuShare], spec: ServingSpec) -> list[GpuShare | None]:
    """Return for each instance type the share with the size of the spec, at the price of the requested capacity
    type. None in place of a share that the cluster does not offer.
    """
    sizes = [(name, spec.gpu_resource, spec.gpus) for name in spec.instance_types]
    alike = [share for share in shares if share.size in sizes]
    offered = {share.size: share for share in catalogue.filter_shares(alike, spec.placement)}
    return [offered.get(size) for size in sizes]


def gpu_names(shares: Iterable[GpuShare | None]) -> str:
    """List the names of the GPUs, each once, for example "NVIDIA-A10G, NVIDIA-L4"."""
    return ", ".join(dict.fromkeys(share.gpu_name for share in shares if share and share.gpu_name))


def _dearness(share: GpuShare) -> tuple[bool, Decimal]:
    """Return the key for ordering shares by price. A price that is not known is not a low one."""
    amount = share.usd_per_hour_amount
    return amount is None, amount or Decimal(0)


def check_budget(cost: Cost, *, is_binding: bool = False) -> Check:
    """Check the forecast against the budget. A forecast over the budget fails without blocking: approvers
    decide. A binding budget blocks, unless the request costs no more than what it replaces. A full month
    counts as well as the rest of this one, which is short on its last day.
    """
    if cost.budget is None:
        detail = "The team has no monthly budget."
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    if cost.forecast is None or cost.team_month_min is None or cost.team_month_max is None:
        detail = "A price is missing, so the monthly forecast is unknown."
        fix = "Ask a platform admin to load the price of this instance type and capacity type."
        return Check("Budget", ok=None, detail=detail, fix=fix, is_blocking=False)
    detail = (
        f"Forecast {format_money(cost.forecast)} this month, {format_money(cost.team_month_min)} in a full "
        f"month{_describe_max(cost.team_month_min, cost.team_month_max)}, of {format_money(cost.budget)}."
    )
    over = max(cost.forecast, cost.team_month_max) - cost.budget
    if over <= 0:
        return Check("Budget", ok=True, detail=detail, is_blocking=False)
    is_blocking = is_binding and cost.is_increase
    otherwise = (
        "ask a platform admin for a larger budget" if is_blocking else "let the approver decide"
    )
    fix = f"Over by {format_money(over)}. Use fewer replicas or a cheaper GPU, or {otherwise}."
    return Check("Budget", ok=False, detail=detail, fix=fix, is_blocking=is_blocking)


def check_consolidation(
    spec: ServingSpec, cluster: ClusterInfo, shares: Sequence[GpuShare | None]
) -> list[Check]:
    """Show what it costs that pods stay on their nodes. Empty unless they are declared not to be disrupted."""
    if not catalogue.keeps_nodes(spec.placement):
        return []
    pods = spec.max_replicas * spec.nodes
    nodes = format_count(pods, "node")
    detail = (
        f"Karpenter keeps the nodes of its pods, up to {nodes}, until the pods end: it moves none to save a node, "
        f"and updates none. {_describe_cost(cluster, shares, pods)}"
    )
    return [Check(CONSOLIDATION, ok=True, detail=detail, is_blocking=False)]


def _describe_cost(cluster: ClusterInfo, shares: Sequence[GpuShare | None], pods: int) -> str:
    unused = [_unused_amount(share, cluster) for share in shares]
    known = [amount for amount in unused if amount is not None]
    if not known or len(known) < len(unused):
        return "The cost of the rest of a node is not known, because its price is missing."
    each = max(known)
    if not each:
        return "A pod fills its node, so no unused GPU is paid for."
    month = (each * pods * HOURS_PER_MONTH).quantize(CENT)
    return f"When nothing else runs there, that is up to {format_money(month)} a month for GPUs that nobody uses."


def _unused_amount(share: GpuShare | None, cluster: ClusterInfo) -> Decimal | None:
    """Return the dollars an hour of a node beside one pod. None means not known."""
    if share is None or share.usd_per_hour_amount is None:
        return None
    price = prices.price_of(
        instance_type=share.instance_type,
        region=cluster.region,
        capacity_type=_priced_as(share),
        on=clock.now().date(),
    )
    if price is None:
        return None
    return max(price.usd_per_hour_amount - share.usd_per_hour_amount, Decimal(0))


def _priced_as(share: GpuShare) -> str:
    """Return the capacity type whose price bounds that of the share's node."""
    is_spot = share.capacity_type == capacity_types.SPOT
    return capacity_types.SPOT if is_spot else capacity_types.ON_DEMAND


def sum_per_hour(revisions: Iterable[RunningRevision], shares: SharesByCluster) -> Decimal | None:
    """Return the cost per hour at min replicas. None if any price is missing."""
    return _sum(revisions, shares, lambda spec: spec.floor_replicas)


def _sum_max(revisions: Iterable[RunningRevision], shares: SharesByCluster) -> Decimal | None:
    return _sum(revisions, shares, lambda spec: spec.max_replicas)


def _sum(
    revisions: Iterable[RunningRevision],
    shares: SharesByCluster,
    replicas: Callable[[ServingSpec], int],
) -> Decimal | None:
    total = Decimal(0)
    for revision in revisions:
        share = find_gpu_share(shares.list_shares(revision.cluster_id), revision.spec)
        if share is None or share.usd_per_hour_amount is None:
            return None
        total += share.usd_per_hour_amount * replicas(revision.spec) * revision.spec.nodes
    return total


def _forecast(
    spent: Decimal,
    per_hour: Decimal | None,
    overlap: Decimal | None,
    replaces: ReplacedDeployment | None,
    at: datetime,
) -> Decimal | None:
    steady = month_end_amount(spent_amount=spent, usd_per_hour_amount=per_hour, at=at)
    if steady is None or overlap is None:
        return None
    seconds = replaces.overlap_seconds if replaces else 0
    return (steady + overlap * count_hours_in_month(at, seconds=seconds)).quantize(CENT)


def _overlap_amount(overlap: Decimal | None, replaces: ReplacedDeployment | None) -> Decimal | None:
    if replaces is None or overlap is None:
        return None
    return (overlap * replaces.overlap_seconds / 3600).quantize(CENT)


def _cheapest(shares: Sequence[GpuShare | None]) -> Decimal | None:
    """Return the hourly price of the cheapest of several instance types. None for a single one, or without all
    prices.
    """
    amounts = [share.usd_per_hour_amount for share in shares if share]
    known = [amount for amount in amounts if amount is not None]
    return min(known) if 1 < len(shares) == len(known) else None


def _replicas(spec: ServingSpec) -> tuple[int, int]:
    return spec.floor_replicas, spec.max_replicas


def _price_source(share: GpuShare | None) -> str:
    if share is None or share.usd_per_hour_amount is None:
        return ""
    is_listed = share.capacity_type in (capacity_types.ON_DEMAND, capacity_types.ANY)
    return share.price_source if is_listed else f"{share.price_source}, {share.capacity_type}"


def _multiply(each: Decimal | None, count: int) -> Decimal | None:
    return None if each is None else each * count


def _add(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    return None if left is None or right is None else left + right


def _per_month(per_hour: Decimal | None) -> Decimal | None:
    return None if per_hour is None else (per_hour * HOURS_PER_MONTH).quantize(CENT)


def _describe_max(minimum: Decimal, maximum: Decimal) -> str:
    return f" ({format_money(maximum)} at max replicas)" if maximum != minimum else ""
