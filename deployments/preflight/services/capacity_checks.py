"""Check a request against the capacity of the cluster's nodes, running and startable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain import replicas
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.settings.instance_types import FIRST_TYPE, OTHER_TYPES
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import fit
from fleet.capacity.selectors.fit import Fit, ReplicaSize
from fleet.capacity.selectors.node_spaces import NodeSpace
from fleet.clusters.domain import node_pools
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.node_pools import NodePool
from fleet.clusters.selectors import instance_types as cluster_instance_types
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import instance_types

CAPACITY: Final = "Capacity now"
_NOT_READ: Final = (
    "Which GPUs are free for claims is not known: the portal may not list ResourceSlices and ResourceClaims of this "
    "cluster. Where none is free, pods wait, and their page has the scheduler's reason."
)
_READ_THEM: Final = "Ask a platform admin to apply the permissions of manage.py cluster_rbac again."
_LABEL_THEM: Final = "Ask a platform admin to label the node, for example with lab-a6000."
BASELINE: Final = "Capacity for the baseline"


def check_instance_type(
    spec: ServingSpec, *, cluster_id: int, pools: Sequence[NodePool]
) -> list[Check]:
    """Check that the instance types are known: an unknown one is usually misspelt and would wait forever for a
    node. Empty for known types.
    """
    known = cluster_instance_types.list_known(cluster_id=cluster_id, pools=pools)
    unknown = [name for name in spec.instance_types if name not in known]
    if not unknown:
        return []
    name = unknown[0]
    title = FIRST_TYPE if name == spec.instance_type else OTHER_TYPES
    unlabelled = cluster_instance_types.list_unlabelled(cluster_id=cluster_id)
    if nodes := unlabelled.get(name):
        detail = f"No pod can require {name}: {nodes[0]} has no label {instance_types.LABEL}."
        return [Check(title, ok=False, detail=detail, fix=_LABEL_THEM)]
    if not known:
        detail = (
            f"Instance type {name} could not be verified: the cluster has no nodes and no "
            "prices are loaded."
        )
        return [Check(title, ok=None, detail=detail, is_blocking=False)]
    detail = f"Unknown instance type {name}: no node uses it and it has no price."
    fix = (
        f"Did you mean {instance_types.nearest(name, known)}? If {name} is new, ask a platform "
        "admin to load its price."
    )
    return [Check(title, ok=False, detail=detail, fix=fix)]


def check_capacity(
    spec: ServingSpec,
    capabilities: Capabilities,
    spaces: Sequence[NodeSpace],
    *,
    are_devices_read: bool = True,
) -> Check:
    """Check the free capacity. A lack of it does not block: nodes start and other pods end. A replica larger
    than the largest node of its type never starts, so that does.
    """
    if catalogue.claim_of(spec) and not are_devices_read:
        return Check(CAPACITY, ok=None, detail=_NOT_READ, fix=_READ_THEM, is_blocking=False)
    size, count = replica_size(spec), spec.min_replicas * spec.nodes
    for name in spec.instance_types:
        alone = fit.fits_now(spaces, size=replace(size, instance_types=(name,)), replicas=count)
        if not alone.is_possible:
            return _check_too_small(name, spec, alone)
    verdict = fit.fits_now(spaces, size=size, replicas=count)
    if verdict.ok:
        return Check(CAPACITY, ok=True, detail=verdict.reason, is_blocking=False)
    if capabilities.node_pools is not None:
        return _check_scale_up(spec, capabilities.node_pools, reason=verdict.reason)
    if capabilities.feature("karpenter").is_there:
        detail = f"{verdict.reason} Karpenter starts a node if a node pool allows {size.types}."
        fix = (
            "Pods wait for a node, usually a few minutes. Choose a free GPU share to start "
            "immediately."
        )
        return Check(CAPACITY, ok=None, detail=detail, fix=fix, is_blocking=False)
    fix = "Pods would stay pending. Choose another GPU or free capacity first."
    return Check(CAPACITY, ok=False, detail=verdict.reason, fix=fix, is_blocking=False)


def _check_too_small(name: str, spec: ServingSpec, verdict: Fit) -> Check:
    short = fit.describe_short(verdict.short_of, spec.gpu_resource)
    less = f"Request less {short.replace(' or ', ' and ')}"
    if name == spec.instance_type:
        fix = f"{less}, or choose a larger instance type."
        return Check(CAPACITY, ok=False, detail=verdict.reason, fix=fix)
    fix = f"{less}, or remove {name} from the other instance types."
    return Check(OTHER_TYPES, ok=False, detail=verdict.reason, fix=fix)


def check_all(
    spec: ServingSpec,
    baseline: ServingSpec | None,
    cluster: ClusterInfo,
    spaces: Sequence[NodeSpace],
) -> list[Check]:
    check = partial(
        check_capacity,
        capabilities=cluster.capabilities,
        spaces=spaces,
        are_devices_read=cluster.devices_read_at is not None,
    )
    checks = [check(spec)]
    if baseline is not None:
        checks.append(check_baseline(baseline, spec, check))
    return checks


def check_baseline(
    baseline: ServingSpec, candidate: ServingSpec, check_spec: Callable[[ServingSpec], Check]
) -> Check:
    """Check the capacity for the baseline, together with the candidate where both need nodes of one kind:
    without it the two would never be compared.
    """
    is_alike = replica_size(baseline) == replica_size(candidate)
    count = baseline.min_replicas + (candidate.min_replicas if is_alike else 0)
    both = replicas.reduce_replicas(baseline, count)
    check = check_spec(both)
    what = "candidate and baseline" if is_alike else "baseline"
    pods = "1 replica" if count == 1 else f"{count} replicas"
    return replace(check, name=BASELINE, detail=f"{pods} of {what}: {check.detail}")


def replica_size(spec: ServingSpec) -> ReplicaSize:
    claim = catalogue.claim_of(spec)
    return ReplicaSize(
        instance_types=spec.instance_types,
        gpu_resource=spec.gpu_resource,
        gpus=spec.gpus,
        cpu=spec.cpu,
        memory=spec.memory,
        requirements=catalogue.requirements_of(spec),
        claim=claim.request if claim else None,
        tolerations=catalogue.tolerations_of(spec),
        claim_tolerations=claim.tolerations if claim else (),
    )


def _check_scale_up(spec: ServingSpec, pools: Sequence[NodePool], *, reason: str) -> Check:
    starts = [
        node_pools.check_start(
            pools,
            instance_type=name,
            requirements=catalogue.requirements_of(spec),
            gpus=spec.gpus * spec.min_replicas * spec.nodes,
            resource=spec.gpu_resource,
        )
        for name in spec.instance_types
    ]
    start = next((start for start in starts if start.ok), starts[0])
    detail = f"{reason} {start.message}"
    if start.doubt:
        fix = f"{start.doubt} Ask a platform admin."
        return Check(CAPACITY, ok=None, detail=detail, fix=fix, is_blocking=False)
    if start.ok:
        return Check(CAPACITY, ok=True, detail=detail, is_blocking=False)
    fix = (
        "Pods would stay pending. Choose another GPU or ask a platform admin to change the "
        "node pool."
    )
    return Check(CAPACITY, ok=False, detail=detail, fix=fix, is_blocking=False)
