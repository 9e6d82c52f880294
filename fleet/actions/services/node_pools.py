"""Changing and creating Karpenter NodePools: the cluster checks each by a dry run before anyone approves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import yaml

from fleet.actions.domain import outcomes, pool_settings
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.pool_settings import PoolSettings
from fleet.actions.services import kept_hours, node_facts
from fleet.gpus.domain.capacity_types import RESERVED
from fleet.gpus.domain.shares import WHOLE
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price, PriceKey
from fleet.kube.domain.errors import ClusterError, ObjectInvalid, ObjectNotFound
from fleet.kube.services import node_pools
from fleet.models import FleetAction
from portal.accounts import fleet_policy
from portal.accounts.policy import Actor
from portal.core import clock
from portal.core.definitions.counts import format_count
from portal.core.errors import Conflict, Invalid, NotFound, Unavailable

_PERMISSIONS: Final = tuple(
    {"group": "karpenter.sh", "resource": "nodepools", "verb": verb}
    for verb in ("get", "create", "patch")
)
# Managers that write a pool again at their next run.
_OTHER_MANAGERS: Final = ("argocd", "helm", "flux", "kustomize-controller", "terraform", "pulumi")


def observe_change(action: FleetAction) -> Evidence:
    node_facts.require_permissions(action, *_PERMISSIONS)
    live = read_live(action)
    if live is None:
        raise Conflict(f"Node pool {action.target} does not exist.", code="no_node_pool")
    settings = PoolSettings.from_json(action.parameters)
    body = pool_settings.patch(live, settings)
    after = pool_settings.apply_patch(live, body)
    if after == live:
        raise Conflict(f"Node pool {action.target} already has these settings.", code="no_change")
    dry_run(action, lambda: _patch(action, body, dry_run=True))
    return _evidence(action, live, after)


def observe_creation(action: FleetAction) -> Evidence:
    node_facts.require_permissions(action, *_PERMISSIONS)
    if read_live(action) is not None:
        raise Conflict(f"Node pool {action.target} already exists.", code="node_pool_exists")
    made = _manifest(action)
    dry_run(
        action,
        lambda: node_pools.create(cluster_id=action.cluster_id, manifest=made, dry_run=True),
    )
    return _evidence(action, {}, made)


def advance_change(action: FleetAction) -> Outcome:
    live = node_pools.get(cluster_id=action.cluster_id, name=action.target)
    if live is None:
        return outcomes.fail(f"Node pool {action.target} was deleted.")
    body = pool_settings.patch(live, PoolSettings.from_json(action.parameters))
    if pool_settings.apply_patch(live, body) == live:
        return await_ready(action, live)
    if generation_of(live) != Evidence.from_json(action.evidence).bound["generation"]:
        message = "Someone changed the node pool after the approval. Request the change again."
        return outcomes.fail(message)
    # Of what was read: an edit since then is a conflict, and the next pass sees it.
    version = (live.get("metadata") or {}).get("resourceVersion")
    _patch(action, {**body, "metadata": {"resourceVersion": version}}, dry_run=False)
    return outcomes.go_on("Changed the node pool.", after_seconds=0)


def advance_creation(action: FleetAction) -> Outcome:
    live = node_pools.get(cluster_id=action.cluster_id, name=action.target)
    if live is not None:
        if pool_settings.has_same_settings(live, _manifest(action)):
            return await_ready(action, live)
        message = f"Someone else created node pool {action.target} with other settings. It was not touched."
        return outcomes.fail(message)
    node_pools.create(cluster_id=action.cluster_id, manifest=_manifest(action))
    return outcomes.go_on("Created the node pool.", after_seconds=0)


def read_settings(*, actor: Actor, cluster_id: int, name: str) -> PoolSettings:
    """Return the current settings of a pool in the cluster, for actors who may request a change. Raises NotFound or
    Unavailable.
    """
    fleet_policy.require_requester(actor)
    try:
        live = node_pools.get(cluster_id=cluster_id, name=name)
    except ClusterError as error:
        raise Unavailable(f"The cluster cannot be reached: {error}") from error
    if live is None:
        raise NotFound(f"Node pool {name} does not exist.")
    return pool_settings.read(live)


def read_live(action: FleetAction) -> dict[str, Any] | None:
    try:
        return node_pools.get(cluster_id=action.cluster_id, name=action.target)
    except ClusterError as error:
        raise Unavailable(f"{action.cluster.name} cannot be reached: {error}") from error


def await_ready(action: FleetAction, live: Mapping[str, Any]) -> Outcome:
    """Return the outcome of an action whose object the cluster has as requested: done unless Karpenter says that it
    is not ready.
    """
    conditions = (live.get("status") or {}).get("conditions") or ()
    ready = next((item for item in conditions if item.get("type") == "Ready"), None)
    if ready is not None and ready.get("status") == "False":
        message = (
            f"Karpenter says that it is not ready: {ready.get('message') or ready.get('reason')}"
        )
        return outcomes.go_on(message, after_seconds=outcomes.RETRY_SECONDS)
    return outcomes.finish("The cluster has applied it.")


def _patch(action: FleetAction, body: Mapping[str, Any], *, dry_run: bool) -> dict[str, Any]:
    return node_pools.patch(
        cluster_id=action.cluster_id, name=action.target, body=body, dry_run=dry_run
    )


def _manifest(action: FleetAction) -> dict[str, Any]:
    return pool_settings.manifest(action.target, PoolSettings.from_json(action.parameters))


def dry_run(action: FleetAction, call: Any) -> None:
    """Raises Invalid with what the cluster says against it."""
    try:
        call()
    except ObjectInvalid as error:
        raise Invalid(f"{action.cluster.name} refuses it: {error}") from error
    except ObjectNotFound as error:
        message = (
            f"{action.cluster.name} has no Karpenter, or {action.target} was deleted meanwhile."
        )
        raise Conflict(
            f"{message} Install Karpenter, or reload the page.", code="no_karpenter"
        ) from error
    except ClusterError as error:
        raise Unavailable(f"{action.cluster.name} could not check it: {error}") from error


def generation_of(live: Mapping[str, Any]) -> int:
    return int((live.get("metadata") or {}).get("generation") or 0)


def _evidence(action: FleetAction, before: Mapping[str, Any], after: Mapping[str, Any]) -> Evidence:
    old, new = pool_settings.read(before), pool_settings.read(after)
    is_new = not before
    return Evidence(
        changes=tuple(_changes(PoolSettings(()) if is_new else old, new, is_new=is_new)),
        warnings=tuple(_warnings(action, before, old, new)),
        usd_per_hour_before=Decimal(0) if is_new else most_per_hour(action, old),
        usd_per_hour_after=most_per_hour(action, new),
        yaml_before="" if is_new else yaml_of(before),
        yaml_after=yaml_of(after),
        bound={"generation": generation_of(before), "spec": after["spec"]},
    )


def most_per_hour(
    action: FleetAction, settings: PoolSettings, *, gpu_limit: int | None = None
) -> Decimal | None:
    """Return what the pool costs per hour at its GPU limit (or at `gpu_limit`), at the highest price per GPU of
    what it may start. None if it has no limit, chooses types by other means, or a price is unknown.
    """
    limit = settings.gpu_limit if gpu_limit is None else gpu_limit
    of_types = None if limit is None else _prices_of(action, settings)
    if not of_types:
        return None
    return max(price.usd_per_gpu_hour_amount for price in of_types) * (limit or 0)


def usd_per_hour_of_nodes(
    action: FleetAction, live: Mapping[str, Any], nodes: int
) -> Decimal | None:
    """Return the hourly price of `nodes` nodes of the pool's most expensive type. None if it chooses types by other
    means or a price is unknown.
    """
    of_types = _prices_of(action, pool_settings.read(live))
    return max(price.usd_per_hour_amount for price in of_types) * nodes if of_types else None


def _prices_of(action: FleetAction, settings: PoolSettings) -> list[Price]:
    """Return the price of each type and capacity type that the pool may start. Empty if one is unknown."""
    book, day = prices.book(settings.instance_types), clock.now().date()
    found = [
        book.on(PriceKey(name, action.cluster.region, capacity), day)
        for name in settings.instance_types
        for capacity in settings.capacity_types
    ]
    return [] if None in found else [price for price in found if price is not None]


def _changes(old: PoolSettings, new: PoolSettings, *, is_new: bool) -> list[FieldChange]:
    rows = (
        ("Instance types", _types(old), _types(new)),
        ("Capacity", ", ".join(old.capacity_types), ", ".join(new.capacity_types)),
        ("GPU limit", _limit(old), _limit(new)),
        ("Taints", ", ".join(old.taints) or "none", ", ".join(new.taints) or "none"),
        ("Consolidation", old.consolidation, new.consolidation),
        ("Consolidate after", old.consolidate_after, new.consolidate_after),
        (new.node_class_kind, old.node_class, new.node_class),
    )
    return [
        FieldChange(label, "" if is_new else before, after)
        for label, before, after in rows
        if is_new or before != after
    ]


def _types(settings: PoolSettings) -> str:
    return ", ".join(settings.instance_types) or "by other requirements"


def _limit(settings: PoolSettings) -> str:
    return "none" if settings.gpu_limit is None else str(settings.gpu_limit)


def _warnings(
    action: FleetAction, before: Mapping[str, Any], old: PoolSettings, new: PoolSettings
) -> list[str]:
    warnings = []
    if managers := other_managers(before):
        warnings.append(
            f"{', '.join(managers)} also writes this node pool, and may restore its own values."
        )
    running = ((before.get("status") or {}).get("resources") or {}).get(WHOLE, "0")
    if new.gpu_limit is not None and str(running).isdigit() and int(running) > new.gpu_limit:
        warnings.append(
            f"It runs {format_count(int(running), 'GPU')}: with a limit of {new.gpu_limit} no node is removed, and none starts."
        )
    if old.gpu_limit != new.gpu_limit:
        warnings += kept_hours.warnings(action)
    if removed := _removed(old, new) if before else []:
        warnings.append(
            f"Karpenter replaces running nodes of {', '.join(removed)}, as disruption budgets allow."
        )
    if RESERVED in new.capacity_types:
        warnings.append(
            f"Reserved nodes start only from the reservations that its {new.node_class_kind} selects."
        )
    if new.gpu_limit is None:
        warnings.append("Without a GPU limit nothing bounds its cost.")
    if new.gpu_limit is not None and most_per_hour(action, new) is None and new.instance_types:
        warnings.append("The price of one of its instance types is not known.")
    return warnings


def _removed(old: PoolSettings, new: PoolSettings) -> list[str]:
    names = set(old.instance_types) - set(new.instance_types) if new.instance_types else set()
    return sorted(names | (set(old.capacity_types) - set(new.capacity_types)))


def other_managers(live: Mapping[str, Any]) -> Sequence[str]:
    names = {
        str(entry.get("manager", ""))
        for entry in (live.get("metadata") or {}).get("managedFields") or ()
    }
    return sorted(name for name in names if name.lower().startswith(_OTHER_MANAGERS))


def yaml_of(item: Mapping[str, Any]) -> str:
    return yaml.safe_dump({"spec": item["spec"]}, sort_keys=True)
