"""Nodes with Neuron devices, as Karpenter and AWS's device plugin describe them, and what is on them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.fleet import objects

DEVICE = "aws.amazon.com/neuron"
CORE = "aws.amazon.com/neuroncore"
_NAMES = {"inf2": "inferentia2", "trn1": "trainium"}


def neuron_node(
    name: str = "inf-1",
    *,
    instance_type: str = "inf2.24xlarge",
    devices: int = 6,
    cpu: str = "95690m",
    memory: str = "355262Mi",
    is_labelled: bool = True,
    created: datetime = objects.START,
) -> dict[str, Any]:
    """`is_labelled`: as Karpenter does; a managed node group says the instance type only."""
    made = objects.node(
        name,
        instance_type=instance_type,
        created=created,
        allocatable={
            DEVICE: str(devices),
            CORE: str(devices * 2),
            "aws.amazon.com/neurondevice": str(devices),
            "cpu": cpu,
            "memory": memory,
        },
    )
    labels = made["metadata"]["labels"]
    for key in [key for key in labels if key.startswith("nvidia.com/")]:
        del labels[key]
    if is_labelled:
        product = _NAMES[instance_type.partition(".")[0]]
        labels["karpenter.k8s.aws/instance-accelerator-name"] = product
        labels["karpenter.k8s.aws/instance-accelerator-manufacturer"] = "aws"
        labels["karpenter.k8s.aws/instance-accelerator-count"] = str(devices)
    return made


def monitor_pod(name: str, node_name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "neuron-monitor", "name": name, "uid": name, "labels": labels},
        "spec": {"nodeName": node_name, "containers": [{"ports": [{"containerPort": 8000}]}]},
        "status": {"phase": "Running"},
    }
