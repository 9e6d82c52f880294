"""Probe whether GPUs can be requested by ResourceClaim: the API version, and the classes of NVIDIA's DRA driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fleet.clusters.domain.capabilities import Feature
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import DEVICE_CLASS
from fleet.kube.gateways.kube_client import KubeClient

_GROUP, _VERSION = "resource.k8s.io", "v1"
_TOLERATIONS: Final = "device-tolerations"
_TAINTS_SINCE: Final = (1, 36)
_CLASSES: Final[Mapping[str, str]] = {
    "device-claims": "gpu.nvidia.com",
    "mig-claims": "mig.nvidia.com",
}


def read(
    client: KubeClient, groups: Mapping[str, list[str]], *, kubernetes: str
) -> dict[str, Feature]:
    """Return the device class features. `groups` has the served versions of each API group; `kubernetes` is the
    version of the cluster.
    """
    if _VERSION not in groups.get(_GROUP, []):
        why = f"The cluster does not serve {_GROUP}/{_VERSION}"
        return dict.fromkeys((*_CLASSES, _TOLERATIONS), Feature(is_there=False, why=why))
    classes = {feature: _of_class(client, name) for feature, name in _CLASSES.items()}
    return {**classes, _TOLERATIONS: _of_version(kubernetes)}


def _of_version(kubernetes: str) -> Feature:
    """The API server drops tolerations where the feature gate is off, as it is by default before."""
    known = re.match(r"v?(\d+)\.(\d+)", kubernetes)
    if known is None:
        return Feature(None, why=f"{kubernetes or 'its version'} is not a version of Kubernetes")
    if (int(known[1]), int(known[2])) < _TAINTS_SINCE:
        return Feature(is_there=False, why=f"Kubernetes {known[1]}.{known[2]} drops them")
    return Feature(is_there=True, version=_VERSION)


def _of_class(client: KubeClient, name: str) -> Feature:
    try:
        client.get(DEVICE_CLASS, None, name)
    except ObjectNotFound:
        return Feature(is_there=False, why=f"The cluster has no DeviceClass {name}")
    except NotAllowed:
        return Feature(None, why=f"the portal may not read DeviceClass {name}")
    return Feature(is_there=True, version=_VERSION)
