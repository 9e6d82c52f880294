"""Nodes whose GPUs NVIDIA's DRA driver offers, what it publishes of them, and claims of pods."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tests.fleet.objects import START, node, pod

DRIVER: Final = "gpu.nvidia.com"
PRODUCT: Final = "NVIDIA A100-SXM4-80GB"
API_VERSION: Final = "resource.k8s.io/v1"


def dra_node(name: str = "dra-1", *, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Neither the device plugin nor GPU feature discovery runs on it."""
    made = node(name, instance_type="p4de.24xlarge", allocatable={"cpu": "95", "memory": "1100Gi"})
    kept = made["metadata"]["labels"]
    for key in [key for key in kept if key.startswith("nvidia.com/")]:
        del kept[key]
    kept |= labels or {}
    return made


def gpu(number: int, memory: str = "80Gi", **fields: Any) -> dict[str, Any]:
    return _device(f"gpu-{number}", {"type": "gpu", "uuid": f"GPU-{number}"}, memory, fields)


def mig(number: int, profile: str, memory: str, place: int = 0, **fields: Any) -> dict[str, Any]:
    attributes = {"type": "mig", "parentUUID": f"GPU-{number}", "profile": profile}
    name = f"gpu-{number}-mig-{profile.replace('.', '')}-{place}"
    return _device(name, attributes, memory, fields)


def _device(
    name: str, attributes: dict[str, str], memory: str, fields: dict[str, Any]
) -> dict[str, Any]:
    texts = {"productName": PRODUCT, **attributes}
    return {
        "name": name,
        "attributes": {key: {"string": value} for key, value in texts.items()},
        "capacity": {"memory": {"value": memory}},
        **fields,
    }


def resource_slice(
    node_name: str = "dra-1",
    *devices: dict[str, Any],
    version: int = 1,
    generation: int = 1,
    name: str = "",
    driver: str = DRIVER,
    **spec: Any,
) -> dict[str, Any]:
    name = name or f"{node_name}-{driver}"
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
            **spec,
        },
    }


def claim(
    name: str,
    *devices: str,
    pods: tuple[str, ...] = (),
    node_name: str = "dra-1",
    namespace: str = "vision",
    version: int = 1,
    driver: str = DRIVER,
    **result: Any,
) -> dict[str, Any]:
    """Allocated, and reserved for these pods of `claiming_pod`; without devices it is not allocated."""
    results = [
        {"request": "gpus", "driver": driver, "pool": node_name, "device": device, **result}
        for device in devices
    ]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
        },
        "spec": {"devices": {"requests": [{"name": "gpus"}]}},
        "status": status if devices else {},
    }


def claiming_pod(
    name: str,
    *,
    workload: str = "",
    claimed: str = "",
    units: int = 0,
    scheduled: datetime | None = START,
    node_name: str = "dra-1",
    **fields: Any,
) -> dict[str, Any]:
    """`claimed` is the label of the portal's own pods, `units` what it also requests of the device plugin."""
    made = pod(
        name, workload=workload, units=units, scheduled=scheduled, node_name=node_name, **fields
    )
    if claimed:
        made["metadata"]["labels"]["slipway.dev/claimed-gpus"] = claimed
    made["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "t"}]
    return made
