"""Whether network policies let the API server's pod proxy through to the models."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.services.unknown_features import or_unknown
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import ResourceType
from fleet.kube.gateways.kube_client import KubeClient

ENDPOINT_SLICE = ResourceType("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
# Every API server writes its own address there; on EKS those of its network interfaces in the VPC.
_OWN = ("default", "kubernetes")


def read_addresses(client: KubeClient) -> tuple[str, ...] | None:
    """Read the API server's addresses. None if the cluster does not state them or refuses."""
    try:
        found = _addresses(client.get(ENDPOINT_SLICE, *_OWN))
    except (NotAllowed, ObjectNotFound):
        return None
    return tuple(address for address in found if _is_address(address)) or None


def read_pod_proxy(client: KubeClient, networks: Sequence[str]) -> Feature:
    """Check whether network policies admit the API server. `networks` are the API server networks of the serving
    policy; without any its own addresses are admitted.
    """

    def check() -> Feature:
        try:
            addresses = _addresses(client.get(ENDPOINT_SLICE, *_OWN))
        except ObjectNotFound:
            return Feature(None, why="The cluster does not state the addresses of its API server.")
        if not networks and all(map(_is_address, addresses)) and addresses:
            return Feature(is_there=True)
        outside = [address for address in addresses if not _is_within(address, networks)]
        if not outside:
            return Feature(is_there=True)
        why = f"Network policies do not admit the API server at {', '.join(outside)}"
        return Feature(is_there=False, why=why)

    return or_unknown(check, "get endpointslices.discovery.k8s.io kubernetes in default")


def _addresses(endpoint_slice: Mapping[str, Any]) -> list[str]:
    endpoints = endpoint_slice.get("endpoints") or ()
    return sorted({str(address) for endpoint in endpoints for address in endpoint["addresses"]})


def _is_address(text: str) -> bool:
    """Return whether text is an address from which requests may come into a pod, which excludes loopback ones."""
    try:
        return not ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _is_within(address: str, networks: Sequence[str]) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(ip in ipaddress.ip_network(network) for network in networks)
