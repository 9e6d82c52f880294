"""PodDisruptionBudgets and NetworkPolicies."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import forbidden, invalid, report_required
from slipway_localcluster.rules.formats import (
    PROTOCOLS,
    find_choice_faults,
    find_port_faults,
    find_selector_faults,
)
from slipway_localcluster.rules.workloads import find_share_faults

_DIRECTIONS = {"ingress": "from", "egress": "to"}
_POLICY_TYPES = ("Egress", "Ingress")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def find_budget_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    fields = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(fields) == 2:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in fields:
        yield from find_share_faults(f"spec.{field}", spec[field])
    yield from find_selector_faults("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from find_choice_faults("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def find_network_policy_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from find_selector_faults("spec.podSelector", spec.get("podSelector"))
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from find_choice_faults(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES)
    for direction, peers in _DIRECTIONS.items():
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for position, port in enumerate(rule.get("ports") or ()):
                yield from _port_faults(f"{here}.ports[{position}]", port)
            for position, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_faults(f"{here}.{peers}[{position}]", peer)


def _port_faults(path: str, port: JsonObject) -> Iterator[Cause]:
    first, last = port.get("port"), port.get("endPort")
    if first is not None:
        yield from find_port_faults(f"{path}.port", first)
    yield from find_choice_faults(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
    if last is not None and not isinstance(first, int):
        yield invalid(f"{path}.endPort", last, "may not be specified without a numeric `port`")
    elif last is not None and last < first:
        yield invalid(f"{path}.endPort", last, "must be greater than or equal to `port`")


def _peer_faults(path: str, peer: JsonObject) -> Iterator[Cause]:
    if not peer:
        yield report_required(path, "must specify a peer")
    for field in ("podSelector", "namespaceSelector"):
        yield from find_selector_faults(f"{path}.{field}", peer.get(field))
    block = peer.get("ipBlock")
    if block is not None:
        if len(peer) > 1:
            yield forbidden(path, "may not specify both ipBlock and another peer")
        yield from _block_faults(f"{path}.ipBlock", block)


def _block_faults(path: str, block: JsonObject) -> Iterator[Cause]:
    outer = _network(block.get("cidr"))
    if not block.get("cidr"):
        yield report_required(f"{path}.cidr")
    elif outer is None:
        yield invalid(f"{path}.cidr", block["cidr"], "must be a valid CIDR value")
    for index, text in enumerate(block.get("except") or ()):
        inner = _network(text)
        if inner is None:
            yield invalid(f"{path}.except[{index}]", text, "must be a valid CIDR value")
        elif outer is not None and not (inner != outer and _is_within(inner, outer)):
            yield invalid(f"{path}.except[{index}]", text, "must be a strict subset of `cidr`")


def _network(text: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(str(text), strict=False) if "/" in str(text) else None
    except ValueError:
        return None


def _is_within(inner: Any, outer: Any) -> bool:
    return inner.version == outer.version and bool(inner.subnet_of(outer))
