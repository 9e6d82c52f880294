"""A Karpenter NodePool as the cluster has it, and settings that a lead requests."""

from __future__ import annotations

from typing import Any

from fleet.actions.domain.pool_settings import PoolSettings

WANTED = PoolSettings(
    instance_types=("g6.xlarge", "g5.xlarge"),
    capacity_types=("on-demand", "spot"),
    gpu_limit=8,
    taints=("nvidia.com/gpu=true:NoSchedule",),
    consolidation="WhenEmpty",
    consolidate_after="10m",
    node_class="gpu",
)
ARCH = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}


def live_pool(**spec: Any) -> dict[str, Any]:
    names = {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["a10g"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {
            "name": "gpu",
            "generation": 3,
            "managedFields": [{"manager": "argocd-controller"}],
        },
        "spec": {
            "template": {
                "metadata": {"labels": {"team": "platform"}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "gpu",
                    },
                    "requirements": [names, ARCH],
                    "expireAfter": "24h",
                },
            },
            "limits": {"nvidia.com/gpu": "4", "cpu": "64"},
            "weight": 10,
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "5m",
                "budgets": [{"nodes": "10%"}],
            },
            **spec,
        },
        "status": {"resources": {"nvidia.com/gpu": "4"}},
    }
