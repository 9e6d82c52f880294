"""Made-up hours of deployments that exist, up to when they are metered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fleet.costs.services import demo_history
from fleet.costs.services.demo_history import ALL_DAY, DAYS, PastNode, PastWorkload
from fleet.gpus.domain.intervals import hour_of
from fleet.models import GpuLease, LedgerRow, Node, SealedHour

# The nodes of the embedded cluster that are there for samples.
_NODES: Final = "demo-"


@dataclass(frozen=True, slots=True)
class DemoSample:
    """A sample deployment. `peak_requests` are those of its busiest hour; 0 means that nobody calls it. `wait_us`
    is what a request waits in the queue before the `mean_us` that it would take otherwise.
    """

    name: str
    replicas: int
    peak_requests: int
    mean_us: int
    wait_us: int = 0


def sees_nodes(cluster_id: int) -> bool:
    return Node.objects.filter(cluster_id=cluster_id).exists()


def list_demo_nodes(cluster_id: int) -> list[Node]:
    """Return the cluster's demo nodes, sorted by name. Empty if the cluster has real GPUs."""
    rows = Node.objects.filter(cluster_id=cluster_id, gone_at=None, name__startswith=_NODES)
    return list(rows.order_by("name"))


def count_metered(team_slug: str) -> int:
    """Count the pods of the team that hold a GPU."""
    return GpuLease.objects.filter(team_slug=team_slug, ended_at=None).count()


def have_history(team_slug: str) -> bool:
    return LedgerRow.objects.filter(is_demo=True, team_slug=team_slug).exists()


def write(*, cluster_id: int, team_slug: str, samples: Sequence[DemoSample]) -> datetime | None:
    """Return when the made-up hours begin; None when they were there. Call when all replicas are metered."""
    nodes = list_demo_nodes(cluster_id)
    open_leases = GpuLease.objects.filter(team_slug=team_slug, ended_at=None)
    leases = list(open_leases.select_related("node", "workload"))
    until = _metered_from(cluster_id, nodes, leases)
    made = demo_history.extend(
        cluster_id=cluster_id,
        until=until,
        nodes=[
            PastNode(node.name, node.instance_type, node.gpu_count, node.uid, node.capacity_type)
            for node in nodes
        ],
        workloads=[_past(team_slug, sample, leases) for sample in samples],
    )
    return until - timedelta(days=DAYS) if made else None


def _past(team_slug: str, sample: DemoSample, leases: Sequence[GpuLease]) -> PastWorkload:
    name = f"{sample.name}-r1"
    own = [one for one in leases if one.workload and one.workload.name == name]
    return PastWorkload(
        team=team_slug,
        deployment=sample.name,
        revision=1,
        nodes=tuple(one.node.name for one in own),
        # Hours before and after the start are of one model and revision.
        labels=own[0].workload.labels if own and own[0].workload else None,
        gpus=1,
        first_day=DAYS,
        last_day=0,
        hours=ALL_DAY,
        peak_requests=sample.peak_requests,
        mean_us=sample.mean_us,
        wait_us=sample.wait_us,
    )


def _metered_from(cluster_id: int, nodes: Sequence[Node], leases: Sequence[GpuLease]) -> datetime:
    """Return the first hour that is not made up. Where an hour ended while the samples came up, their nodes are
    metered from the next one, unless it is sealed.
    """
    seen = min(hour_of(node.first_seen_at) for node in nodes)
    held = max((hour_of(lease.started_at) for lease in leases), default=seen)
    sealed = SealedHour.objects.filter(cluster_id=cluster_id, hour__gte=seen, hour__lt=held)
    if held <= seen or sealed.exists():
        return seen
    Node.objects.filter(pk__in=[node.pk for node in nodes]).update(first_seen_at=held)
    return held
