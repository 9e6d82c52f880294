"""Nodes without a machine: the scheduler binds pods to them, and nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.cluster.kubectl import Kubectl

_LABELS = {
    "node.kubernetes.io/instance-type": "g5.xlarge",
    "karpenter.sh/capacity-type": "on-demand",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "nvidia.com/gpu.present": "true",
}
_CAPACITY = {
    "cpu": "16",
    "memory": "64Gi",
    "pods": "110",
    "ephemeral-storage": "200Gi",
}
_GPUS = {"nvidia.com/gpu": "4"}
_READY = {"type": "Ready", "status": "True", "reason": "Test", "message": "No kubelet"}


@contextmanager
def ready_node(
    admin: Kubectl,
    name: str,
    *,
    instance_type: str = "g5.xlarge",
    accelerators: Mapping[str, str] = _GPUS,
    taints: Sequence[Mapping[str, str]] = (),
) -> Iterator[str]:
    """A node that the scheduler may use, with four GPUs by default."""
    labels = {**_LABELS, "node.kubernetes.io/instance-type": instance_type}
    metadata = {"name": name, "labels": labels}
    admin.apply([{"apiVersion": "v1", "kind": "Node", "metadata": metadata}])
    capacity = {**_CAPACITY, **accelerators}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [_READY]}
    admin.patch("node", name, "--subresource=status", patch={"status": status})
    # A new node is tainted as not ready. The controller that takes it away needs a kubelet's lease.
    admin.patch("node", name, patch={"spec": {"taints": list(taints) or None}})
    try:
        yield name
    finally:
        admin.run("delete", "node", name)
