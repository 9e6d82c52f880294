"""The nodes that take the pods of a spec: node selector and node affinity."""

from __future__ import annotations

from typing import Any, Final

from deployments.spec.domain import node_selection
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.provisioner import NodeLabels
from fleet.gpus.domain import capacity_types

# Kubernetes allows 1 to 100 for a preference.
_WEIGHT: Final = 100
_STEP: Final = 100 // node_selection.MOST_OTHER_TYPES


def selector_of(spec: ServingSpec) -> dict[str, str]:
    """Return the node selector. It requires all its labels, so several instance types are in the affinity."""
    labels = node_selection.read_labels(spec.placement.node_labels)
    if len(spec.instance_types) > 1:
        return labels
    return {**labels, node_selection.INSTANCE_TYPE_LABEL: spec.instance_type}


def affinity_of(spec: ServingSpec, labels: NodeLabels) -> dict[str, Any]:
    """Return the node affinity, using labels that the cluster's provisioner knows. Empty if the selector suffices."""
    fields: dict[str, Any] = {}
    if terms := _terms(spec, labels):
        required = {"nodeSelectorTerms": terms}
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred := _preferences(spec.instance_types):
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return fields


def _terms(spec: ServingSpec, labels: NodeLabels) -> list[dict[str, Any]]:
    """Return the terms of the affinity. Terms are alternatives, so that each of them requires the instance
    types.
    """
    terms = _capacity_terms(spec.placement.capacity, labels)
    if len(spec.instance_types) == 1:
        return [{"matchExpressions": term} for term in terms]
    types = _in(spec.instance_types)
    # Karpenter drops terms from the front before it drops a preferred type: the last has to be its own.
    return [{"matchExpressions": [types, *term]} for term in reversed(terms or [[]])]


def _capacity_terms(capacity: str, labels: NodeLabels) -> list[list[dict[str, Any]]]:
    """Return the terms for the capacity type. Karpenter and node groups label their nodes differently; nodes
    without any of the labels count as on-demand.
    """
    if capacity == capacity_types.SPOT:
        return [[{"key": key, "operator": "In", "values": [value]}] for key, value in labels.spot]
    if capacity == capacity_types.ON_DEMAND and labels.has_other_spot_nodes:
        others = [capacity_types.ON_DEMAND, capacity_types.RESERVED]
        return [[{"key": key, "operator": "In", "values": others} for key, _ in labels.spot]]
    if capacity == capacity_types.ON_DEMAND:
        return [
            [{"key": key, "operator": "NotIn", "values": [value]} for key, value in labels.spot]
        ]
    return []


def _preferences(types: tuple[str, ...]) -> list[dict[str, Any]]:
    """Prefer each type but the last, the first one the heaviest. Karpenter requires the heaviest at first, and
    drops one after the other until a node can start: down the list.
    """
    return [
        {"weight": _WEIGHT - _STEP * index, "preference": {"matchExpressions": [_in((name,))]}}
        for index, name in enumerate(types[:-1])
    ]


def _in(types: tuple[str, ...]) -> dict[str, Any]:
    return {
        "key": node_selection.INSTANCE_TYPE_LABEL,
        "operator": "In",
        "values": list(types),
    }
