"""Probe whether GPUs can be requested by ResourceClaim: the API version, and the classes of NVIDIA's DRA driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fleet.clusters.domain.capabilities import Feature
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import DEVICE_CLASS
from fleet.kube.gateways.kube_client import KubeClient

_GROUP, _VERSION = "resource.k8s.io", "v1"
_CLASSES: Final[Mapping[str, str]] = {
    "device-claims": "gpu.nvidia.com",
    "mig-claims": "mig.nvidia.com",
}


def read(client: KubeClient, groups: Mapping[str, list[str]]) -> dict[str, Feature]:
    """By feature. `groups` has the served versions of each API group."""
    if _VERSION not in groups.get(_GROUP, []):
        why = f"The cluster does not serve {_GROUP}/{_VERSION}"
        return dict.fromkeys(_CLASSES, Feature(is_there=False, why=why))
    return {feature: _of_class(client, name) for feature, name in _CLASSES.items()}


def _of_class(client: KubeClient, name: str) -> Feature:
    try:
        client.get(DEVICE_CLASS, None, name)
    except ObjectNotFound:
        return Feature(is_there=False, why=f"The cluster has no DeviceClass {name}")
    except NotAllowed:
        return Feature(None, why=f"the portal may not read DeviceClass {name}")
    return Feature(is_there=True, version=_VERSION)
