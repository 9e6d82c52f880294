"""Office hours of a node pool, as a request: what they change, what they cost, and how they are set and ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from fleet.actions.domain import outcomes, pool_settings
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.services import node_facts, node_groups, node_pools, pool_pods
from fleet.clusters.domain.node_groups import UPDATING, NodeGroup
from fleet.clusters.services import node_groups as live_groups
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.models import FleetAction
from fleet.office_hours.domain import hours as hour_rules
from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.hours import HOURS_PER_WEEK, OfficeHours
from fleet.office_hours.domain.sizes import GPU_LIMIT, REPLICAS, PoolKind, Size
from fleet.office_hours.selectors import office_hours
from fleet.office_hours.selectors.office_hours import KeptHours
from fleet.office_hours.services import changes as kept_changes
from portal.core.errors import Conflict, Unavailable

_ALWAYS: Final = "always open"
# Codes of refusals for a pool that was deleted.
_GONE: Final = ("no_node_pool", "no_node_group")
_PATCH_POOLS: Final = (
    {"group": "karpenter.sh", "resource": "nodepools", "verb": "get"},
    {"group": "karpenter.sh", "resource": "nodepools", "verb": "patch"},
)


@dataclass(frozen=True, slots=True)
class _Pool:
    """A pool as AWS or the cluster has it: an EKS node group, or the NodePool `live`."""

    size: Size
    group: NodeGroup | None = None
    live: Mapping[str, Any] | None = None


def observe(action: FleetAction) -> Evidence:
    pool, kept = _read(action), _kept(action)
    hours = OfficeHours.from_json(action.parameters)
    if kept is not None and kept.hours == hours and not kept.row.is_ending:
        raise Conflict(f"{action.target} already has these office hours.", code="no_change")
    own = _own_size(pool, kept)
    return Evidence(
        changes=tuple(_changes(kept, hours, own)),
        deployments=pool_pods.list_deployments(action.cluster_id, _kind(action), action.target),
        warnings=tuple(_warnings(pool, hours, own)),
        usd_per_hour_before=_mean_usd_per_hour(action, pool, own, kept.hours if kept else None),
        usd_per_hour_after=_mean_usd_per_hour(action, pool, own, hours),
        bound={"size": dict(own), "hours": kept.hours.to_json() if kept else None},
    )


def observe_end(action: FleetAction) -> Evidence:
    kept = _kept(action)
    if kept is None:
        raise Conflict(f"{action.target} has no office hours.", code="no_office_hours")
    changes = (FieldChange("Office hours", kept.description, _ALWAYS),)
    try:
        pool = _read(action)
    except Conflict as error:
        if error.code not in _GONE:
            raise
        gone = f"{error.message} Only its office hours are removed."
        return Evidence(changes, warnings=(gone,), bound={"hours": kept.hours.to_json()})
    own = _own_size(pool, kept)
    return Evidence(
        changes=changes,
        warnings=()
        if kept.is_open
        else (f"It is closed now. It gets {sizes.describe(own)} back at once.",),
        usd_per_hour_before=_mean_usd_per_hour(action, pool, own, kept.hours),
        usd_per_hour_after=_mean_usd_per_hour(action, pool, own, None),
        bound={"size": dict(own), "hours": kept.hours.to_json()},
    )


def advance(action: FleetAction) -> Outcome:
    kept_changes.apply(action=action, hours=OfficeHours.from_json(action.parameters))
    kept = _kept(action)
    when = f" at {kept.next_edge_at:%Y-%m-%d %H:%M} UTC" if kept else ""
    what = "opens" if kept and kept.opens_next else "closes"
    return outcomes.finish(f"Its office hours are set. It {what}{when}.")


def advance_end(action: FleetAction) -> Outcome:
    kept = _kept(action)
    if kept is None:
        return outcomes.finish("Its office hours have ended.")
    kept_changes.end(row=kept.row)
    message = f"The pool gets its size back. {kept.row.problem}".strip()
    return outcomes.go_on(message, after_seconds=outcomes.RETRY_SECONDS)


def revert(action: FleetAction) -> Outcome:
    """End a cancellation. Office hours are set in one step, so there is nothing half done."""
    return outcomes.finish("Nothing was changed.")


def revert_end(action: FleetAction) -> Outcome:
    message = "Its office hours end anyway. Request them again to keep them."
    return outcomes.finish(message)


def _kind(action: FleetAction) -> PoolKind:
    return PoolKind(action.target_kind)


def _kept(action: FleetAction) -> KeptHours | None:
    return office_hours.find(
        cluster_id=action.cluster_id, kind=action.target_kind, name=action.target
    )


def _read(action: FleetAction) -> _Pool:
    if _kind(action) is PoolKind.NODE_GROUP:
        return _read_group(action)
    node_facts.require_permissions(action, *_PATCH_POOLS)
    live = node_pools.read_live(action)
    if live is None:
        raise Conflict(f"Node pool {action.target} does not exist.", code="no_node_pool")
    return _Pool(sizes.read_node_pool(live), live=live)


def _read_group(action: FleetAction) -> _Pool:
    try:
        group = live_groups.describe(cluster_id=action.cluster_id, name=action.target)
    except ObjectNotFound as error:
        raise Conflict(
            f"There is no node group {action.target}: {error}", code="no_node_group"
        ) from error
    except ClusterError as error:
        raise Unavailable(f"AWS does not answer: {error}") from error
    if group.status == UPDATING:
        raise Conflict(
            f"Node group {group.name} is being updated. Wait until the update ends.", code="busy"
        )
    return _Pool(group.size.to_json(), group=group)


def _own_size(pool: _Pool, kept: KeptHours | None) -> Size:
    """Return the pool's size in office hours. While the pool is closed, this is the size that it gets back."""
    if kept is None or kept.is_open or kept.row.open_size is None:
        return pool.size
    return dict(kept.row.open_size)


def _changes(kept: KeptHours | None, hours: OfficeHours, own: Size) -> list[FieldChange]:
    closed = sizes.describe(sizes.compute_closed_size(own, hours.closed_size))
    before_closed = (
        sizes.describe(sizes.compute_closed_size(own, kept.hours.closed_size)) if kept else ""
    )
    per_week = kept.hours.hours_per_week if kept else Decimal(HOURS_PER_WEEK)
    rows = (
        ("Office hours", kept.description if kept else _ALWAYS, hour_rules.describe(hours)),
        ("Hours a week", hour_rules.format_hours(per_week), hours.hours_text),
        ("In office hours", sizes.describe(own), sizes.describe(own)),
        ("Outside of them", before_closed, closed),
    )
    return [FieldChange(*row) for row in rows]


def _warnings(pool: _Pool, hours: OfficeHours, own: Size) -> list[str]:
    if pool.group is not None:
        return _warnings_of_group(pool.group, sizes.compute_closed_size(own, hours.closed_size))
    live = pool.live or {}
    warnings = []
    if managers := node_pools.other_managers(live):
        warnings.append(
            f"{', '.join(managers)} also writes this node pool, and may restore its own values."
        )
    if REPLICAS in own:
        warnings.append("A static NodePool ends nodes when it closes: Karpenter drains them first.")
        return warnings
    warnings.append(_what_ends_nodes(live))
    return warnings


def _what_ends_nodes(live: Mapping[str, Any]) -> str:
    settings = pool_settings.read(live)
    lead = "A lower GPU limit starts no new node and ends no running one."
    if settings.consolidate_after == "Never":
        return (
            f"{lead} This pool never consolidates, so its nodes stay, and cost the same, until someone "
            "removes them."
        )
    empty = "no pod but those of DaemonSets"
    rule = f"{lead} Karpenter ends a node {settings.consolidate_after} after it has {empty}"
    if settings.consolidation != "WhenEmpty":
        rule += ", or when its pods fit on other nodes"
    return (
        f"{rule}. So deployments that keep replicas at night keep their nodes: give them office hours or "
        "scale to zero too."
    )


def _warnings_of_group(group: NodeGroup, closed: Size) -> list[str]:
    warnings = [f"AWS reports {issue}" for issue in group.issues]
    warnings.append(
        "When it closes, AWS chooses which nodes end, and drains them for up to 15 minutes."
    )
    if int(closed["desired_size"]) == 0:
        warnings.append(
            "AWS requires a maximum of at least 1: where Cluster Autoscaler runs, pods that wait can start one node."
        )
    if len(group.instance_types) > 1:
        warnings.append(
            "It may start several instance types. The cost assumes the most expensive one."
        )
    return warnings


def _mean_usd_per_hour(
    action: FleetAction, pool: _Pool, own: Size, hours: OfficeHours | None
) -> Decimal | None:
    """Return the mean cost per hour over a week. None if it is unknown what the pool costs open or closed."""
    opened = _usd_per_hour(action, pool, own)
    if hours is None or opened is None:
        return opened
    closed = _usd_per_hour(action, pool, sizes.compute_closed_size(own, hours.closed_size))
    if closed is None:
        return None
    fraction = hours.open_fraction
    return (opened * fraction + closed * (1 - fraction)).quantize(Decimal("0.000001"))


def _usd_per_hour(action: FleetAction, pool: _Pool, size: Size) -> Decimal | None:
    if pool.group is not None:
        return node_groups.usd_per_hour(action, pool.group, int(size["desired_size"]))
    if REPLICAS in size:
        return node_pools.usd_per_hour_of_nodes(action, pool.live or {}, int(size[REPLICAS]))
    limit = size[GPU_LIMIT]
    if limit is None or not str(limit).isdigit():
        return None
    settings = pool_settings.read(pool.live or {})
    return node_pools.most_per_hour(action, settings, gpu_limit=int(limit))
