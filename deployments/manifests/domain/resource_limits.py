"""Limits of a team's namespace from the team's quota; they also apply to changes outside of the
portal.
"""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain.metadata import MANAGED_BY, Manifest, ManifestContext
from fleet.gpus.domain import neuron

NAME: Final = "slipway"
_MIG: Final = [
    "1g.5gb",
    "1g.5gb.me",
    "1g.10gb",
    "1g.10gb.me",
    "1g.18gb",
    "1g.18gb.me",
    "1g.20gb",
    "1g.23gb",
    "1g.23gb.me",
    "1g.24gb",
    "1g.34gb",
    "1g.35gb",
    "1g.45gb",
    "1g.67gb",
    "2g.10gb",
    "2g.20gb",
    "2g.35gb",
    "2g.45gb",
    "2g.48gb",
    "2g.67gb",
    "2g.90gb",
    "3g.20gb",
    "3g.40gb",
    "3g.71gb",
    "3g.90gb",
    "3g.135gb",
    "4g.20gb",
    "4g.40gb",
    "4g.71gb",
    "4g.90gb",
    "4g.96gb",
    "4g.135gb",
    "7g.40gb",
    "7g.80gb",
    "7g.141gb",
    "7g.180gb",
    "7g.269gb",
]
_GPU_RESOURCES: Final = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    *(f"nvidia.com/mig-{profile}" for profile in _MIG),
)
# Cores and devices are the same hardware under two names: deployments request devices, so cores have no quota.
_NEURON_RESOURCES: Final = {neuron.DEVICE: 1, neuron.DEVICE_ALIAS: 0, neuron.CORE: 0}
# GPUs that pods claim instead.
_CLAIMED: Final = ("gpu.nvidia.com", "mig.nvidia.com")
# For containers that KServe or a mesh adds without resources; the portal's own all state theirs.
_DEFAULT: Final = {"cpu": "1", "memory": "2Gi"}
_DEFAULT_REQUEST: Final = {"cpu": "100m", "memory": "128Mi"}


def limit_namespace(context: ManifestContext, *, quota_gpus: int) -> list[Manifest]:
    """Return the ResourceQuota and LimitRange. Not part of an approval: a quota changes without a change
    request.
    """
    return [_resource_quota(context, quota_gpus), _limit_range(context)]


def _resource_quota(context: ManifestContext, quota_gpus: int) -> Manifest:
    """Return the ResourceQuota: GPUs of each kind and Neuron devices up to the quota; no Service that would
    bypass the gateway.
    """
    hard = {f"requests.{name}": str(quota_gpus) for name in _GPU_RESOURCES}
    hard |= {f"requests.{name}": str(quota_gpus * n) for name, n in _NEURON_RESOURCES.items()}
    hard |= {f"{name}.deviceclass.resource.k8s.io/devices": str(quota_gpus) for name in _CLAIMED}
    hard |= {"services.loadbalancers": "0", "services.nodeports": "0"}
    return _manifest(context, "ResourceQuota", {"hard": hard})


def _limit_range(context: ManifestContext) -> Manifest:
    limit = {
        "type": "Container",
        "default": dict(_DEFAULT),
        "defaultRequest": dict(_DEFAULT_REQUEST),
    }
    return _manifest(context, "LimitRange", {"limits": [limit]})


def _manifest(context: ManifestContext, kind: str, spec: dict[str, object]) -> Manifest:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": NAME, "namespace": context.namespace, "labels": labels},
        "spec": spec,
    }
