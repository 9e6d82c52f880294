"""Small Kubernetes objects as an API server returns them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def node(
    name: str = "node-1",
    *,
    uid: str = "",
    version: int = 1,
    instance_type: str = "g5.xlarge",
    gpus: int = 1,
    created: datetime = START,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    is_ready: bool = True,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": stamp(created),
            "labels": {
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/region": "us-east-1",
                "topology.kubernetes.io/zone": "us-east-1a",
                "karpenter.sh/capacity-type": "on-demand",
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": "22888",
                "nvidia.com/gpu.product": "NVIDIA-A10G",
                **(labels or {}),
            },
        },
        "spec": {},
        "status": {
            "allocatable": allocatable or {GPU: str(gpus), "cpu": "3920m", "memory": "14162Mi"},
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
        },
    }


def pod(
    name: str = "detector-r1-abc",
    *,
    uid: str = "",
    version: int = 1,
    namespace: str = "vision",
    workload: str = "detector-r1",
    node_name: str = "node-1",
    units: int = 1,
    resource: str = GPU,
    created: datetime = START,
    scheduled: datetime | None = START,
    phase: str = "Running",
    finished: datetime | None = None,
    deleted: datetime | None = None,
) -> dict[str, Any]:
    labels = (
        {"slipway.dev/workload": workload, "slipway.dev/deployment-id": "7"} if workload else {}
    )
    conditions = []
    if node_name and scheduled:
        conditions += [_condition("PodScheduled", scheduled)]
        conditions += [_condition("Ready", scheduled)] if phase == "Running" else []
    else:
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
            }
        )
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": stamp(created),
        "labels": labels,
    }
    status: dict[str, Any] = {"phase": phase, "conditions": conditions}
    if finished:
        ended = {"exitCode": 0, "finishedAt": stamp(finished)}
        status["containerStatuses"] = [{"name": "kserve-container", "state": {"terminated": ended}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"deletionTimestamp": stamp(deleted)} if deleted else {}),
        "spec": {
            "containers": [
                {
                    "name": "kserve-container",
                    "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
                    "resources": {"limits": {resource: str(units)} if units else {}},
                }
            ],
            **({"nodeName": node_name} if node_name else {}),
        },
        "status": status,
    }


def _condition(type_: str, at: datetime) -> dict[str, str]:
    return {"type": type_, "status": "True", "lastTransitionTime": stamp(at)}
