"""GPU leases follow from pod rows alone, so that seeing things twice or late changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from fleet.gpus.domain import shares
from fleet.models import GpuLease, Node, Pod


def sync(*, cluster_id: int, pod_ids: Collection[int], at: datetime) -> None:
    """Open, complete or leave alone the lease of each pod. Call inside a transaction."""
    pods = Pod.objects.filter(
        pk__in=pod_ids, gpu_units__gt=0, node__isnull=False, scheduled_at__isnull=False
    ).select_related("node", "workload__team")
    wanted = {pod.uid: lease_of(pod, at) for pod in pods}
    known = {
        lease.pod_uid: lease
        for lease in GpuLease.objects.filter(cluster_id=cluster_id, pod_uid__in=wanted)
    }
    GpuLease.objects.bulk_create([new for uid, new in wanted.items() if uid not in known])
    changed = [
        _changed(known[uid], new)
        for uid, new in wanted.items()
        if uid in known and _facts(known[uid]) != _facts(new)
    ]
    GpuLease.objects.bulk_update(
        changed, ["workload", "team_slug", "started_at", "ended_at", "changed_at"]
    )


def end_on_gone_nodes(*, cluster_id: int, node_ids: Collection[int], at: datetime) -> None:
    """A node takes its pods with it; the cluster may tell of them much later."""
    for node in Node.objects.filter(pk__in=node_ids).exclude(gone_at=None):
        Pod.objects.filter(node=node, ended_at=None).update(ended_at=node.gone_at)
    if node_ids:
        pods = Pod.objects.filter(node_id__in=node_ids).values_list("pk", flat=True)
        sync(cluster_id=cluster_id, pod_ids=list(pods), at=at)


def lease_of(pod: Pod, at: datetime) -> GpuLease:
    """What the row says. The end is when its containers ended, or when the pod was gone."""
    if pod.node is None or pod.scheduled_at is None:
        raise ValueError(f"pod {pod} is not scheduled and holds nothing")
    ended = pod.ended_at or pod.gone_at
    gpus = shares.gpus_of(pod.node.labels, pod.node.allocatable)
    return GpuLease(
        cluster_id=pod.cluster_id,
        node=pod.node,
        workload=pod.workload,
        pod_uid=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        team_slug=pod.workload.team.slug if pod.workload else "",
        share_ppm=shares.share_ppm(pod.gpu_resource, pod.gpu_units, gpus),
        started_at=pod.scheduled_at,
        # Clocks of nodes and of the API server differ a little.
        ended_at=None if ended is None else max(ended, pod.scheduled_at),
        changed_at=at,
    )


def _facts(lease: GpuLease) -> tuple[object, ...]:
    return lease.workload_id, lease.team_slug, lease.started_at, lease.ended_at


def _changed(old: GpuLease, new: GpuLease) -> GpuLease:
    """The share stays what it was when the pod was placed, whatever the node says later."""
    old.workload_id, old.team_slug = new.workload_id, new.team_slug
    old.started_at, old.ended_at, old.changed_at = new.started_at, new.ended_at, new.changed_at
    return old
