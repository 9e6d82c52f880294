"""Write observations of a cluster into rows; used by the watcher and the sweep.

Observations may arrive repeatedly, late and in any order: a row only moves to a newer resource
version, and a gone object stays gone. One transaction per call, one writer per cluster at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from django.db import transaction

from fleet.kube.domain.resource_types import Manifest
from fleet.models import Cluster
from fleet.observation.domain import dra, parse, taint_rules
from fleet.observation.services import claimable, gpu_leases, subscribers
from fleet.observation.services import claims as observation_claims
from fleet.observation.services import nodes as observation_nodes
from fleet.observation.services import pods as observation_pods

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObservedChanges:
    """Changed objects from the API server; deleted ones in their last state."""

    nodes: Sequence[Manifest] = ()
    pods: Sequence[Manifest] = ()
    deleted_nodes: Sequence[Manifest] = ()
    deleted_pods: Sequence[Manifest] = ()


@dataclass(frozen=True, slots=True)
class DeviceChanges:
    """Changed ResourceSlices and ResourceClaims; deleted ones in their last state."""

    slices: Sequence[Manifest] = ()
    deleted_slices: Sequence[Manifest] = ()
    claims: Sequence[Manifest] = ()
    deleted_claims: Sequence[Manifest] = ()


@dataclass(frozen=True, slots=True)
class FullListing:
    """All objects of a kind at one resource version: objects missing from it are gone."""

    items: Sequence[Manifest] = field(default_factory=tuple)
    resource_version: int = 0


def record(*, cluster_id: int, changes: ObservedChanges, at: datetime) -> None:
    """Write changed objects."""
    nodes = [parse.node(item) for item in changes.nodes]
    gone_nodes = [parse.node(item) for item in changes.deleted_nodes]
    pods = [parse.pod(item) for item in changes.pods]
    gone_pods = [parse.pod(item) for item in changes.deleted_pods]
    with transaction.atomic():
        cluster = _lock(cluster_id)
        new_nodes = observation_nodes.write(cluster, [*nodes, *gone_nodes], at=at)
        changed = observation_pods.write(cluster, [*pods, *gone_pods], at=at)
        changed |= observation_pods.attach(cluster, new_nodes)
        ended = observation_nodes.end(cluster, {node.uid: at for node in gone_nodes})
        changed |= observation_pods.end(cluster, {pod.uid: pod.ended_at or at for pod in gone_pods})
        gpu_leases.sync(cluster_id=cluster_id, pod_ids=changed, at=at)
        gpu_leases.end_on_gone_nodes(cluster_id=cluster_id, node_ids=ended, at=at)
    subscribers.notify(cluster_id, observation_pods.read_labels(changed))


def replace_all(
    *, cluster_id: int, nodes: FullListing | None, pods: FullListing | None, at: datetime
) -> None:
    """Write complete listings of one kind or both.

    Objects missing from a listing ended at an unknown time since the last full listing. They are ended
    at that listing's time, so that unobserved time is never charged. `at` must precede the request.
    """
    observed_nodes = [parse.node(item) for item in nodes.items] if nodes else []
    observed_pods = [parse.pod(item) for item in pods.items] if pods else []
    with transaction.atomic():
        cluster = _lock(cluster_id)
        last_listing_at = cluster.last_seen_at or cluster.created_at
        new_nodes = observation_nodes.write(cluster, observed_nodes, at=at)
        changed = observation_pods.write(cluster, observed_pods, at=at)
        changed |= observation_pods.attach(cluster, new_nodes)
        ended: set[int] = set()
        if nodes:
            ended = observation_nodes.end_missing(
                cluster, nodes.resource_version, observed_nodes, last_listing_at
            )
        if pods:
            changed |= observation_pods.end_missing(
                cluster, pods.resource_version, observed_pods, last_listing_at
            )
        gpu_leases.sync(cluster_id=cluster_id, pod_ids=changed, at=at)
        gpu_leases.end_on_gone_nodes(cluster_id=cluster_id, node_ids=ended, at=at)
        if nodes and pods:
            Cluster.objects.filter(pk=cluster_id).update(
                last_seen_at=max(at, last_listing_at), is_reachable=True, last_error=""
            )
    subscribers.notify(cluster_id, observation_pods.read_labels(changed))


def record_devices(*, cluster_id: int, changes: DeviceChanges, at: datetime) -> None:
    """Write changed slices and claims, and what nodes and pods have by them."""
    slices = _parsed(dra.resource_slice, changes.slices)
    claims = _parsed(dra.claim, changes.claims)
    gone = _uids(changes.deleted_claims) | _uids(changes.claims) - {one.uid for one in claims}
    with transaction.atomic():
        cluster = _lock(cluster_id)
        names = claimable.write(cluster, slices, _uids(changes.deleted_slices))
        claimable.update_nodes(cluster, names)
        holders = observation_claims.write(cluster, claims, gone, at=at)
        if names:
            holders |= observation_claims.holders(cluster)
        changed = observation_pods.assign_claimed_devices(cluster, holders)
        gpu_leases.sync(cluster_id=cluster_id, pod_ids=changed, at=at)
    subscribers.notify(cluster_id, observation_pods.read_labels(changed))


def replace_devices(
    *, cluster_id: int, slices: FullListing | None, claims: FullListing | None, at: datetime
) -> None:
    """Write complete listings of one kind or both."""
    observed_slices = _parsed(dra.resource_slice, slices.items) if slices else []
    observed_claims = _parsed(dra.claim, claims.items) if claims else []
    with transaction.atomic():
        cluster = _lock(cluster_id)
        if slices:
            names = claimable.write(cluster, observed_slices, ())
            names |= claimable.delete_missing(cluster, slices.resource_version, observed_slices)
            claimable.update_nodes(cluster, names)
        if claims:
            observation_claims.write(cluster, observed_claims, (), at=at)
            observation_claims.delete_missing(cluster, claims.resource_version, observed_claims)
        # All of them: a node or a pod may have been observed after its slice or claim.
        changed = observation_pods.assign_claimed_devices(
            cluster, observation_claims.holders(cluster)
        )
        gpu_leases.sync(cluster_id=cluster_id, pod_ids=changed, at=at)
        if slices and claims:
            Cluster.objects.filter(pk=cluster_id).update(devices_read_at=at)
    subscribers.notify(cluster_id, observation_pods.read_labels(changed))


def record_taint_rules(*, cluster_id: int, rules: Sequence[Manifest]) -> None:
    """Write the DeviceTaintRules of the cluster, and what they take from its nodes."""
    parsed = taint_rules.rules(rules)
    with transaction.atomic():
        claimable.write_rules(_lock(cluster_id), parsed)


def forget_devices(*, cluster_id: int) -> None:
    """Record that DRA devices cannot be read any more: what is free is unknown then. What was observed stays."""
    rows = Cluster.objects.filter(pk=cluster_id).exclude(devices_read_at=None)
    rows.update(devices_read_at=None)


def _parsed(parse_one: Callable[[Manifest], T | None], items: Iterable[Manifest]) -> list[T]:
    return [one for one in map(parse_one, items) if one is not None]


def _uids(items: Iterable[Manifest]) -> set[str]:
    return {str(item["metadata"]["uid"]) for item in items}


def _lock(cluster_id: int) -> Cluster:
    return Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)
