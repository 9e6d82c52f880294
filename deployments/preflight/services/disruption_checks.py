"""What it costs that Karpenter leaves the pods of a revision where they are."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from fleet.gpus.selectors import prices
from portal.core import clock
from portal.core.definitions.counts import counted

NAME: Final = "Consolidation"


def check_disruption(
    spec: ServingSpec, cluster: ClusterInfo, shares: Sequence[GpuShare | None]
) -> list[Check]:
    """Empty unless the pods are declared not to be disrupted."""
    if not spec.placement.do_not_disrupt:
        return []
    pods = spec.max_replicas * spec.nodes
    nodes = counted(pods, "node")
    detail = (
        f"Karpenter keeps the nodes of its pods, up to {nodes}, until the pods end: it moves none to save a node, "
        f"and updates none. {_describe_cost(spec, cluster, shares, pods)}"
    )
    return [Check(NAME, ok=True, detail=detail, is_blocking=False)]


def _describe_cost(
    spec: ServingSpec, cluster: ClusterInfo, shares: Sequence[GpuShare | None], pods: int
) -> str:
    unused = [_unused_amount(share, spec, cluster) for share in shares]
    known = [amount for amount in unused if amount is not None]
    if not known or len(known) < len(unused):
        return "What a node costs beside a pod is not known: its price is missing."
    each = max(known)
    if not each:
        return "A pod fills its node, so no unused GPU is paid for."
    month = (each * pods * HOURS_PER_MONTH).quantize(CENT)
    return f"When nothing else runs there, that is up to ${month:,.2f} a month for GPUs that nobody uses."


def _unused_amount(
    share: GpuShare | None, spec: ServingSpec, cluster: ClusterInfo
) -> Decimal | None:
    """Dollars an hour of a node beside one pod; None: not known."""
    if share is None or share.usd_per_hour_amount is None:
        return None
    capacity = spec.placement.capacity
    kind = capacity_types.ON_DEMAND if capacity == capacity_types.ANY else capacity
    price = prices.price_of(
        instance_type=share.instance_type,
        region=cluster.region,
        capacity_type=kind,
        on=clock.now().date(),
    )
    if price is None:
        return None
    return max(price.usd_per_hour_amount - share.usd_per_hour_amount, Decimal(0))
