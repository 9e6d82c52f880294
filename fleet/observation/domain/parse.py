"""Parse nodes and pods of the API server into the fields that Slipway stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.clusters.domain import queues
from fleet.gpus.domain import capacity_types, claimed_gpus
from fleet.observation.domain import node_health, pod_nodes, pod_requests, pod_start

_FINISHED = frozenset({"Succeeded", "Failed"})
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObservedNode:
    uid: str
    name: str
    resource_version: int
    created_at: datetime
    instance_type: str
    capacity_type: str
    region: str
    zone: str
    allocatable: dict[str, str]
    labels: dict[str, str]
    conditions: list[dict[str, str]]
    taints: list[dict[str, str]]
    is_ready: bool
    is_schedulable: bool
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod as observed. `ended_at` is when its containers ended; None while it holds its resources."""

    uid: str
    namespace: str
    name: str
    resource_version: int
    labels: dict[str, str]
    node_name: str
    phase: str
    reason: str
    message: str
    is_ready: bool
    restart_count: int
    gpu_resource: str
    gpu_units: int
    # Of these, what is requested of a device plugin and not by a claim.
    plugin_units: int
    has_claims: bool
    cpu_millicores: int
    memory_bytes: int
    created_at: datetime
    scheduled_at: datetime | None
    ready_at: datetime | None
    start_seconds: dict[str, int]
    is_finished: bool
    ended_at: datetime | None
    instance_types: list[str]


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def resource_version(item: Json) -> int:
    text = str((item.get("metadata") or {}).get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0


def node(item: Json) -> ObservedNode:
    metadata, status = item["metadata"], item.get("status") or {}
    labels = dict(metadata.get("labels") or {})
    allocatable = {key: str(value) for key, value in (status.get("allocatable") or {}).items()}
    ready = _condition(status, "Ready")
    return ObservedNode(
        uid=metadata["uid"],
        name=metadata["name"],
        resource_version=resource_version(item),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        capacity_type=capacity_types.read_labels(labels),
        region=labels.get("topology.kubernetes.io/region", ""),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        allocatable=allocatable,
        labels=labels,
        conditions=node_health.extract_conditions(status),
        taints=node_health.extract_taints(item.get("spec") or {}),
        is_ready=ready.get("status") == "True",
        is_schedulable=not (item.get("spec") or {}).get("unschedulable", False),
        is_simulated=labels.get("slipway.dev/simulated") == "true",
    )


def pod(item: Json) -> ObservedPod:
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    gpus = _gpus(item)
    cpu, memory = pod_requests.cpu_and_memory(spec)
    scheduled, ready = _condition(status, "PodScheduled"), _condition(status, "Ready")
    reason, message = _reason_not_ready(item)
    phase = str(status.get("phase") or "Pending")
    is_finished = phase in _FINISHED
    created_at = datetime.fromisoformat(metadata["creationTimestamp"])
    scheduled_at = _scheduled_at(spec, status, scheduled, metadata)
    is_ready = ready.get("status") == "True"
    ready_at = parse_time(ready.get("lastTransitionTime")) if is_ready else None
    return ObservedPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        resource_version=resource_version(item),
        labels=dict(metadata.get("labels") or {}),
        node_name=spec.get("nodeName") or "",
        phase=phase,
        reason=reason[:100],
        message=message,
        is_ready=is_ready,
        restart_count=sum(int(c.get("restartCount", 0)) for c in _statuses(status)),
        gpu_resource=gpus.resource,
        gpu_units=gpus.units,
        plugin_units=gpus.plugin_units,
        has_claims=gpus.has_claims,
        cpu_millicores=cpu,
        memory_bytes=memory,
        created_at=created_at,
        scheduled_at=scheduled_at,
        ready_at=ready_at,
        start_seconds=pod_start.measure_steps(
            status, created_at=created_at, scheduled_at=scheduled_at, ready_at=ready_at
        )
        # How long it waited in a queue is no time of a start, and its status does not say.
        if queues.QUEUE_LABEL not in (metadata.get("labels") or {})
        else {},
        is_finished=is_finished,
        ended_at=_ended_at(status) if is_finished or metadata.get("deletionTimestamp") else None,
        instance_types=pod_nodes.list_instance_types(spec),
    )


@dataclass(frozen=True, slots=True)
class _Gpus:
    """See ObservedPod."""

    resource: str
    units: int
    plugin_units: int
    has_claims: bool


def _gpus(item: Json) -> _Gpus:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    resource, units = pod_requests.gpus(spec)
    # The scheduler may make a claim of a device plugin's resource (DRAExtendedResource).
    is_extended = bool(status.get("extendedResourceClaimStatus"))
    has_claims = is_extended or bool(spec.get("resourceClaims"))
    if has_claims and not resource:
        resource, units = claimed_gpus.read(item["metadata"].get("labels") or {})
        return _Gpus(resource, units, 0, has_claims)
    return _Gpus(resource, units, 0 if is_extended else units, has_claims)


def _condition(status: Json, type_: str) -> Json:
    condition: Json
    for condition in status.get("conditions") or []:
        if condition.get("type") == type_:
            return condition
    return {}


def _statuses(status: Json) -> list[Json]:
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _scheduled_at(spec: Json, status: Json, scheduled: Json, metadata: Json) -> datetime | None:
    if not spec.get("nodeName"):
        return None
    at = scheduled.get("lastTransitionTime") if scheduled.get("status") == "True" else None
    return parse_time(at or status.get("startTime") or metadata["creationTimestamp"])


def _ended_at(status: Json) -> datetime | None:
    """Return the end of the pod's last container. None while one still runs or an end is not reported. Sidecars end
    last.
    """
    ends = [_end_of(container) for container in status.get("containerStatuses") or []]
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return None
    of_init = [_end_of(container) for container in status.get("initContainerStatuses") or []]
    return max(*known, *(end for end in of_init if end is not None), known[0])


def _end_of(container: Json) -> datetime | None:
    return parse_time(((container.get("state") or {}).get("terminated") or {}).get("finishedAt"))


def _reason_not_ready(item: Json) -> tuple[str, str]:
    """Return the cluster's own reason and message, the most specific first."""
    status = item.get("status") or {}
    if item["metadata"].get("deletionTimestamp"):
        return "Terminating", ""
    ready, scheduled = _condition(status, "Ready"), _condition(status, "PodScheduled")
    if ready.get("status") == "True":
        return "", ""
    if scheduled.get("status") == "False" or queues.is_gated(item):
        return _why_without_node(item, scheduled)
    for container in _statuses(status):
        problem = _container_problem(container)
        if problem:
            return problem
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message", ""))
    return str(ready.get("reason", "")), str(ready.get("message", ""))


def _why_without_node(item: Json, scheduled: Json) -> tuple[str, str]:
    if queues.is_gated(item):
        return "Queued", "Waits for admission by Kueue."
    return str(scheduled.get("reason", "")), str(scheduled.get("message", ""))


def _container_problem(container: Json) -> tuple[str, str] | None:
    state = container.get("state") or {}
    last = (container.get("lastState") or {}).get("terminated") or {}
    if waiting := state.get("waiting"):
        message = str(waiting.get("message", ""))
        if last:
            message = f"{message} (last run: {_describe_exit(last)})".strip()
        return str(waiting.get("reason", "Waiting")), message
    ended = state.get("terminated") or {}
    if ended and ended.get("exitCode", 0) != 0:
        return str(ended.get("reason") or "Error"), _describe_exit(ended)
    return None


def _describe_exit(ended: Json) -> str:
    parts = [f"exit code {ended.get('exitCode', '?')}"]
    parts += [str(ended[key]) for key in ("reason", "message") if ended.get(key)]
    return ", ".join(parts)
