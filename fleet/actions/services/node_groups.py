"""Scaling a managed node group of EKS."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from fleet.actions.domain import outcomes
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.services import kept_hours
from fleet.clusters.domain.node_groups import ACTIVE, UPDATING, GroupSize, NodeGroup
from fleet.clusters.selectors import clusters
from fleet.clusters.services import node_groups
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceKey
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.models import FleetAction
from portal.accounts import fleet_policy
from portal.accounts.policy import Actor
from portal.core import clock
from portal.core.errors import Conflict, NotFound, Unavailable

MOST_NODES: Final = 450


def problems_with(size: GroupSize) -> dict[str, str]:
    if size.max_size < 1 or size.max_size > MOST_NODES:
        return {"max_size": f"use 1 to {MOST_NODES}"}
    if not 0 <= size.min_size <= size.max_size:
        return {"min_size": "use 0 up to the maximum"}
    if not size.min_size <= size.desired_size <= size.max_size:
        return {"desired_size": "use the minimum up to the maximum"}
    return {}


def read(*, actor: Actor, cluster_id: int, name: str) -> NodeGroup:
    """Return a node group as AWS has it, for actors who may request a change. Raises NotFound or Unavailable."""
    fleet_policy.require_requester(actor)
    clusters.get_cluster(cluster_id)
    try:
        return node_groups.describe(cluster_id=cluster_id, name=name)
    except ObjectNotFound as error:
        raise NotFound(f"There is no node group {name}: {error}") from error
    except ClusterError as error:
        raise Unavailable(f"AWS does not answer: {error}") from error


def list_or_unavailable(*, cluster_id: int) -> list[NodeGroup]:
    try:
        return node_groups.list_groups(cluster_id=cluster_id)
    except ClusterError as error:
        raise Unavailable(f"AWS does not answer: {error}") from error


def observe(action: FleetAction) -> Evidence:
    try:
        group = node_groups.describe(cluster_id=action.cluster_id, name=action.target)
    except ObjectNotFound as error:
        raise Conflict(
            f"There is no node group {action.target}: {error}", code="no_node_group"
        ) from error
    except ClusterError as error:
        raise Unavailable(f"AWS does not answer: {error}") from error
    desired = GroupSize.from_json(action.parameters)
    if group.size == desired:
        raise Conflict(f"Node group {group.name} already has this size.", code="no_change")
    if group.status == UPDATING:
        raise Conflict(
            f"Node group {group.name} is being updated. Wait until the update ends.", code="busy"
        )
    return Evidence(
        changes=tuple(_changes(group.size, desired)),
        warnings=(*_warnings(group, desired), *kept_hours.warnings(action)),
        usd_per_hour_before=usd_per_hour(action, group, group.size.desired_size),
        usd_per_hour_after=usd_per_hour(action, group, desired.desired_size),
        bound={"size": group.size.to_json()},
    )


def advance(action: FleetAction) -> Outcome:
    try:
        group = node_groups.describe(cluster_id=action.cluster_id, name=action.target)
    except ObjectNotFound:
        return outcomes.fail(f"Node group {action.target} was deleted.")
    desired = GroupSize.from_json(action.parameters)
    if group.status == UPDATING:
        return outcomes.go_on(
            "AWS is updating the node group.",
            after_seconds=outcomes.RETRY_SECONDS,
        )
    if group.size == desired:
        issues = f" AWS reports {'; '.join(group.issues)}" if group.issues else ""
        return outcomes.finish(f"AWS has applied the size.{issues}")
    if group.size.to_json() != Evidence.from_json(action.evidence).bound["size"]:
        message = "Someone scaled the node group after the approval. Request it again."
        return outcomes.fail(message)
    node_groups.scale(
        cluster_id=action.cluster_id,
        name=action.target,
        size=desired,
        token=f"slipway-{action.pk}-{action.evidence_hash[:16]}",
    )
    return outcomes.go_on("The size was sent to AWS.")


def _changes(old: GroupSize, new: GroupSize) -> list[FieldChange]:
    rows = (
        ("Desired nodes", old.desired_size, new.desired_size),
        ("Min nodes", old.min_size, new.min_size),
        ("Max nodes", old.max_size, new.max_size),
    )
    return [FieldChange(label, str(a), str(b)) for label, a, b in rows if a != b]


def _warnings(group: NodeGroup, desired: GroupSize) -> list[str]:
    warnings = [f"AWS reports {issue}" for issue in group.issues]
    if group.status != ACTIVE:
        warnings.append(f"The node group is {group.status.lower()}.")
    if desired.desired_size < group.size.desired_size:
        warnings.append(
            "AWS chooses which nodes end and drains them. To choose them yourself, drain them first."
        )
    if len(group.instance_types) > 1:
        warnings.append(
            "It may start several instance types. The cost assumes the most expensive one."
        )
    return warnings


def usd_per_hour(action: FleetAction, group: NodeGroup, nodes: int) -> Decimal | None:
    """Return the hourly price of `nodes` nodes of the group's most expensive type. None if a price is unknown."""
    book, day = prices.book(group.instance_types), clock.now().date()
    amounts = []
    for name in group.instance_types:
        price = book.on(PriceKey(name, action.cluster.region, group.capacity_type), day)
        if price is None:
            return None
        amounts.append(price.usd_per_hour_amount)
    return max(amounts) * nodes if amounts else None
