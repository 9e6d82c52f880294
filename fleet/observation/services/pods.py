"""Pod rows: pods of registered workloads, and any other pod that holds a GPU or may hold one by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db.models import Q

from fleet.gpus.domain import claimed_gpus
from fleet.gpus.domain.claimed_gpus import ClaimedDevice
from fleet.models import Cluster, Node, Pod, Workload
from fleet.observation.domain.parse import ObservedPod
from fleet.observation.services import claims

WORKLOAD_LABEL = "slipway.dev/workload"
_COLUMNS = (
    "name",
    "namespace",
    "workload",
    "node",
    "node_name",
    "labels",
    "phase",
    "reason",
    "message",
    "is_ready",
    "restart_count",
    "gpu_resource",
    "gpu_units",
    "plugin_units",
    "devices",
    "cpu_millicores",
    "memory_bytes",
    "scheduled_at",
    "ready_at",
    "start_seconds",
    "ended_at",
    "instance_types",
)
_Names = Mapping[tuple[str, str], int]
# Node rows by name, the oldest first.
_Lives = Mapping[str, Sequence[Node]]


def write(cluster: Cluster, observed: Sequence[ObservedPod], *, at: datetime) -> set[int]:
    """Create and update rows; return the ids of new and changed ones."""
    kept = [
        pod for pod in observed if WORKLOAD_LABEL in pod.labels or pod.gpu_units or pod.has_claims
    ]
    newest = {pod.uid: pod for pod in sorted(kept, key=lambda pod: pod.resource_version)}
    rows = {row.uid: row for row in Pod.objects.filter(cluster=cluster, uid__in=newest)}
    workloads, nodes = _workloads(cluster, kept), _nodes(cluster, kept)
    claimed = claims.read_claimed_devices(
        cluster, [pod.uid for pod in newest.values() if pod.has_claims]
    )
    new, changed = [], []
    for uid, pod in newest.items():
        row = rows.get(uid)
        values = _values(pod, workloads, nodes, row, at) | _gpus(pod, row, claimed.get(uid, []))
        if row is None:
            row = Pod(cluster=cluster, uid=uid, created_at=pod.created_at)
            new.append(row)
        elif _is_older(pod, row) or all(getattr(row, key) == v for key, v in values.items()):
            continue
        else:
            changed.append(row)
        for key, value in values.items():
            setattr(row, key, value)
        row.resource_version = pod.resource_version
    Pod.objects.bulk_create(new)
    Pod.objects.bulk_update(changed, [*_COLUMNS, "resource_version"])
    return {row.pk for row in [*new, *changed]}


def assign_claimed_devices(cluster: Cluster, pod_uids: Collection[str]) -> set[int]:
    """Give pods the devices of their claims; return the ids of those that hold more than before."""
    known = claims.read_claimed_devices(cluster, pod_uids)
    changed = []
    for row in Pod.objects.filter(cluster=cluster, uid__in=known):
        before = claimed_gpus.devices_from_json(row.devices)
        held = claimed_gpus.merge_claims(before, known[row.uid])
        if held != before:
            row.devices = [asdict(one) for one in held]
            requested = (row.gpu_resource, row.plugin_units)
            row.gpu_resource, row.gpu_units = claimed_gpus.with_devices(
                requested, (row.gpu_resource, row.gpu_units), held
            )
            changed.append(row)
    Pod.objects.bulk_update(changed, ["devices", "gpu_resource", "gpu_units"])
    return {row.pk for row in changed}


def attach(cluster: Cluster, new_nodes: Collection[Node]) -> set[int]:
    """Attach pods that were observed before their node; return their ids."""
    attached: set[int] = set()
    for node in new_nodes:
        is_alive = Q(ended_at=None) | Q(ended_at__gt=node.first_seen_at)
        waiting = Pod.objects.filter(is_alive, cluster=cluster, node=None, node_name=node.name)
        pods = list(waiting.values_list("pk", flat=True))
        if pods:
            Pod.objects.filter(pk__in=pods).update(node=node)
            attached.update(pods)
    return attached


def end(cluster: Cluster, gone: Mapping[str, datetime]) -> set[int]:
    """Mark pods as gone, given as uid and time; return the ids of the rows that ended now."""
    rows = list(Pod.objects.filter(cluster=cluster, uid__in=gone, gone_at=None))
    for row in rows:
        row.gone_at = max(gone[row.uid], row.created_at)
        row.ended_at = row.ended_at or row.gone_at
        row.is_ready = False
    Pod.objects.bulk_update(rows, ["gone_at", "ended_at", "is_ready"])
    return {row.pk for row in rows}


def end_missing(
    cluster: Cluster, version: int, observed: Sequence[ObservedPod], since: datetime
) -> set[int]:
    """End rows that are missing from a listing. Rows newer than the listing are left alone."""
    live = Pod.objects.filter(cluster=cluster, gone_at=None)
    if version:
        live = live.filter(resource_version__lte=version)
    uids = {pod.uid for pod in observed}
    gone = {uid: since for uid in live.values_list("uid", flat=True) if uid not in uids}
    return end(cluster, gone)


def read_labels(pod_ids: Collection[int]) -> list[dict[str, str]]:
    if not pod_ids:
        return []
    return list(Pod.objects.filter(pk__in=pod_ids).values_list("labels", flat=True))


def _is_older(pod: ObservedPod, row: Pod) -> bool:
    if row.gone_at is not None:
        return True
    return bool(pod.resource_version) and pod.resource_version < row.resource_version


def _workloads(cluster: Cluster, observed: Collection[ObservedPod]) -> _Names:
    names = {pod.labels[WORKLOAD_LABEL] for pod in observed if WORKLOAD_LABEL in pod.labels}
    if not names:
        return {}
    rows = Workload.objects.filter(cluster=cluster, name__in=names)
    return {(row.namespace, row.name): row.pk for row in rows}


def _nodes(cluster: Cluster, observed: Collection[ObservedPod]) -> _Lives:
    names = {pod.node_name for pod in observed if pod.node_name}
    rows = Node.objects.filter(cluster=cluster, name__in=names).order_by("first_seen_at")
    lives: dict[str, list[Node]] = defaultdict(list)
    for row in rows:
        lives[row.name].append(row)
    return lives


def _node_of(pod: ObservedPod, nodes: _Lives) -> int | None:
    """Return the node row that existed when the pod started: a name can have several rows over time."""
    started_at = pod.scheduled_at or pod.created_at
    alive = [
        node
        for node in nodes.get(pod.node_name, ())
        if node.gone_at is None or node.gone_at > started_at
    ]
    started = [node for node in alive if node.first_seen_at <= started_at]
    chosen = started[-1] if started else next(iter(alive), None)
    return chosen.pk if chosen else None


def _values(
    pod: ObservedPod, workloads: _Names, nodes: _Lives, row: Pod | None, at: datetime
) -> dict[str, object]:
    """Return the column values. A known node or workload is kept, because a pod cannot move."""
    ended = row.ended_at if row else None
    if ended is None:
        ended = pod.ended_at or (at if pod.is_finished else None)
    workload = workloads.get((pod.namespace, pod.labels.get(WORKLOAD_LABEL, "")))
    return {
        "name": pod.name,
        "namespace": pod.namespace,
        "workload_id": (row.workload_id if row else None) or workload,
        "node_id": (row.node_id if row else None) or _node_of(pod, nodes),
        "node_name": pod.node_name,
        "labels": pod.labels,
        "phase": pod.phase,
        "reason": pod.reason,
        "message": pod.message,
        "is_ready": pod.is_ready,
        "restart_count": pod.restart_count,
        "plugin_units": pod.plugin_units,
        "cpu_millicores": pod.cpu_millicores,
        "memory_bytes": pod.memory_bytes,
        "scheduled_at": pod.scheduled_at,
        # The first time only: Triton's counters start then.
        "ready_at": (row.ready_at if row else None) or pod.ready_at,
        "start_seconds": row.start_seconds if row and row.ready_at else pod.start_seconds,
        "ended_at": ended,
        "instance_types": pod.instance_types,
    }


def _gpus(pod: ObservedPod, row: Pod | None, known: Sequence[ClaimedDevice]) -> dict[str, object]:
    before = claimed_gpus.devices_from_json(row.devices) if row else []
    held = claimed_gpus.merge_claims(before, known)
    resource, units = claimed_gpus.with_devices(
        (pod.gpu_resource, pod.plugin_units), (pod.gpu_resource, pod.gpu_units), held
    )
    return {
        "gpu_resource": resource,
        "gpu_units": units,
        "devices": [asdict(one) for one in held],
    }
