"""Whom a NetworkPolicy admits, as the documentation of Kubernetes says: an evaluation of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Peer:
    """A pod by its namespace and labels, or an address outside of pods."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


def admits(policy: Mapping[str, Any], peer: Peer, port: int) -> bool:
    """Into the pods that the policy selects. Rules add up; without any nobody is admitted."""
    own = policy["metadata"]["namespace"]
    return any(
        _is_port(rule, port) and _is_from(rule, peer, own)
        for rule in policy["spec"].get("ingress") or ()
    )


def _is_port(rule: Mapping[str, Any], port: int) -> bool:
    listed = rule.get("ports")
    return not listed or any(item["port"] == port for item in listed)


def _is_from(rule: Mapping[str, Any], peer: Peer, own: str) -> bool:
    """Without sources everyone is meant."""
    listed = rule.get("from")
    return not listed or any(_is_source(source, peer, own) for source in listed)


def _is_source(source: Mapping[str, Any], peer: Peer, own: str) -> bool:
    if "ipBlock" in source:
        return bool(peer.address) and _is_inside(peer.address, source["ipBlock"])
    if not peer.namespace:
        return False
    named = {"kubernetes.io/metadata.name": peer.namespace}
    namespaces = source.get("namespaceSelector")
    is_there = peer.namespace == own if namespaces is None else _matches(namespaces, named)
    return is_there and _matches(source.get("podSelector") or {}, peer.labels)


def _is_inside(address: str, block: Mapping[str, Any]) -> bool:
    ip = ipaddress.ip_address(address)
    excepted = [ipaddress.ip_network(cidr) for cidr in block.get("except") or ()]
    return ip in ipaddress.ip_network(block["cidr"]) and not any(ip in net for net in excepted)


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    present = [expression["key"] in labels for expression in selector.get("matchExpressions") or ()]
    return all(present) and wanted.items() <= labels.items()
