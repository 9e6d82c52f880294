"""Checks of a request against what the cluster's nodes have and could have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import fit
from fleet.capacity.selectors.fit import ReplicaSize
from fleet.clusters.domain import node_pools
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.node_pools import NodePool
from fleet.clusters.selectors import instance_types as cluster_instance_types
from fleet.gpus.domain import instance_types

CAPACITY: Final = "Capacity now"
INSTANCE_TYPE: Final = "Instance type"


def of_instance_type(spec: ServingSpec, *, cluster_id: int) -> list[Check]:
    """Only where nobody knows the type: most are misspelt, and would wait for a node for ever."""
    known = cluster_instance_types.list_known(cluster_id=cluster_id)
    name = spec.instance_type
    if name in known:
        return []
    if not known:
        words = (
            f"Instance type {name} could not be verified: the cluster has no nodes and no "
            "prices are loaded."
        )
        return [Check(INSTANCE_TYPE, ok=None, detail=words, is_blocking=False)]
    detail = f"Unknown instance type {name}: no node uses it and it has no price."
    fix = (
        f"Did you mean {instance_types.nearest(name, known)}? If {name} is new, ask a platform "
        "admin to load its price."
    )
    return [Check(INSTANCE_TYPE, ok=False, detail=detail, fix=fix)]


def of_capacity(spec: ServingSpec, offered: Capabilities, *, cluster_id: int) -> Check:
    """Too little room now does not refuse: nodes can start, and others can finish. A replica that
    is larger than the largest node of its type never starts, so that does.
    """
    found = fit.fits_now(
        cluster_id=cluster_id,
        size=size_of(spec),
        replicas=spec.min_replicas * spec.nodes,
    )
    if found.ok:
        return Check(CAPACITY, ok=True, detail=found.reason, is_blocking=False)
    if not found.is_possible:
        fix = f"Request less {' and '.join(found.short_of)}, or choose a larger instance type."
        return Check(CAPACITY, ok=False, detail=found.reason, fix=fix)
    if offered.node_pools is not None:
        return _by_scale_up(spec, offered.node_pools, now=found.reason)
    if offered.feature("karpenter").is_there:
        words = (
            f"{found.reason} Karpenter starts a node if a node pool allows {spec.instance_type}."
        )
        fix = (
            "Pods wait for a node, usually a few minutes. Choose a free GPU share to start "
            "immediately."
        )
        return Check(CAPACITY, ok=None, detail=words, fix=fix, is_blocking=False)
    fix = "Pods would stay pending. Choose another GPU or free capacity first."
    return Check(CAPACITY, ok=False, detail=found.reason, fix=fix, is_blocking=False)


def size_of(spec: ServingSpec) -> ReplicaSize:
    return ReplicaSize(
        instance_type=spec.instance_type,
        gpu_resource=spec.gpu_resource,
        gpus=spec.gpus,
        cpu=spec.cpu,
        memory=spec.memory,
        capacity_type=spec.placement.capacity,
    )


def _by_scale_up(spec: ServingSpec, pools: Sequence[NodePool], *, now: str) -> Check:
    start = node_pools.could_start(
        pools,
        instance_type=spec.instance_type,
        capacity=spec.placement.capacity,
        gpus=spec.gpus * spec.min_replicas * spec.nodes,
    )
    words = f"{now} {start.words}"
    if start.ok:
        return Check(CAPACITY, ok=True, detail=words, is_blocking=False)
    fix = (
        "Pods would stay pending. Choose another GPU or ask a platform admin to change the "
        "node pool."
    )
    return Check(CAPACITY, ok=False, detail=words, fix=fix, is_blocking=False)
