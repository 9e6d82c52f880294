"""Derive GPU leases from pod rows only, so that repeated and late observations change nothing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from fleet.gpus.domain import claimed_gpus, shares
from fleet.models import GpuLease, Node, Pod


def sync(*, cluster_id: int, pod_ids: Collection[int], at: datetime) -> None:
    """Open or update the lease of each pod. Call inside a transaction."""
    pods = Pod.objects.filter(
        pk__in=pod_ids, gpu_units__gt=0, node__isnull=False, scheduled_at__isnull=False
    ).select_related("node", "workload__team")
    desired = {pod.uid: build_lease(pod, at) for pod in pods}
    known = {
        lease.pod_uid: lease
        for lease in GpuLease.objects.filter(cluster_id=cluster_id, pod_uid__in=desired)
    }
    GpuLease.objects.bulk_create([new for uid, new in desired.items() if uid not in known])
    growing = {pod.uid for pod in pods if pod.devices}
    changed = []
    for uid in desired.keys() & known.keys():
        old, new = known[uid], desired[uid]
        if uid not in growing:
            # The share stays what it was when the pod was scheduled; only devices come one after the other.
            new.share_ppm = old.share_ppm
        if _changing_values(old) != _changing_values(new):
            changed.append(_update(old, new))
    GpuLease.objects.bulk_update(
        changed, ["workload", "team_slug", "share_ppm", "started_at", "ended_at", "changed_at"]
    )


def end_on_gone_nodes(*, cluster_id: int, node_ids: Collection[int], at: datetime) -> None:
    """End the pods of removed nodes; the cluster may report their end much later."""
    for node in Node.objects.filter(pk__in=node_ids).exclude(gone_at=None):
        Pod.objects.filter(node=node, ended_at=None).update(ended_at=node.gone_at)
    if node_ids:
        pods = Pod.objects.filter(node_id__in=node_ids).values_list("pk", flat=True)
        sync(cluster_id=cluster_id, pod_ids=list(pods), at=at)


def build_lease(pod: Pod, at: datetime) -> GpuLease:
    """Return the lease of a scheduled pod. It ends when the containers ended or the pod was removed."""
    if pod.node is None or pod.scheduled_at is None:
        raise ValueError(f"pod {pod} is not scheduled, so it has no GPU")
    ended = pod.ended_at or pod.gone_at
    gpus, held = shares.read_node(pod.node), claimed_gpus.devices_from_json(pod.devices)
    of_plugin = claimed_gpus.units_of_plugin(pod.gpu_resource, pod.gpu_units, held)
    began_at = claimed_gpus.began_at(pod.scheduled_at, held, of_plugin)
    return GpuLease(
        cluster_id=pod.cluster_id,
        node=pod.node,
        workload=pod.workload,
        pod_uid=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        team_slug=pod.workload.team.slug if pod.workload else "",
        share_ppm=shares.share_ppm(pod.gpu_resource, of_plugin, gpus)
        + sum(one.ppm for one in held),
        started_at=began_at,
        # The clocks of nodes and of the API server differ slightly.
        ended_at=None if ended is None else max(ended, began_at),
        changed_at=at,
    )


def _changing_values(lease: GpuLease) -> tuple[object, ...]:
    return lease.workload_id, lease.team_slug, lease.share_ppm, lease.started_at, lease.ended_at


def _update(old: GpuLease, new: GpuLease) -> GpuLease:
    old.workload_id, old.team_slug, old.share_ppm = new.workload_id, new.team_slug, new.share_ppm
    old.started_at, old.ended_at, old.changed_at = new.started_at, new.ended_at, new.changed_at
    return old
