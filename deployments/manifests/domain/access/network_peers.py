"""The peers that network policies name: namespaces and blocks of addresses."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Any, Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# The node's own credentials are served at one of these addresses.
_LINK_LOCAL: Final = ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")


def namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}}


def namespace_of(host: str) -> str:
    """Return the namespace of a Service's name: minio.storage.svc.cluster.local; else empty."""
    parts = host.split(".")
    return parts[1] if len(parts) > 2 and parts[2] == "svc" else ""


def block(cidr: str) -> dict[str, Any]:
    """Return an address block without link-local addresses: there a pod could get the node's own identity."""
    block: dict[str, Any] = {"cidr": cidr}
    excluded = _link_local_inside(cidr)
    return {"ipBlock": {**block, "except": list(excluded)} if excluded else block}


@lru_cache(maxsize=1024)
def _link_local_inside(cidr: str) -> tuple[str, ...]:
    """Return the link-local addresses inside the block. Cached, because parsing addresses took a quarter of the
    time to render a revision.
    """
    network = ipaddress.ip_network(cidr)
    return tuple(part for part in _LINK_LOCAL if _is_inside(ipaddress.ip_network(part), network))


def _is_inside(part: Network, network: Network) -> bool:
    if isinstance(part, ipaddress.IPv4Network):
        is_subnet = isinstance(network, ipaddress.IPv4Network) and part.subnet_of(network)
    else:
        is_subnet = isinstance(network, ipaddress.IPv6Network) and part.subnet_of(network)
    return is_subnet and part != network
