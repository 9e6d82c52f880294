"""Changing and creating Karpenter EC2NodeClasses: the cluster checks each by a dry run before anyone approves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleet.actions.domain import node_class_settings, outcomes
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.node_class_settings import SMALLEST_GIB, NodeClassSettings
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.pool_settings import apply_patch
from fleet.actions.services import node_facts, node_pools
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import node_classes
from fleet.models import FleetAction, Node
from fleet.office_hours.domain.sizes import PoolKind
from portal.accounts import fleet_policy
from portal.accounts.policy import Actor
from portal.core.errors import Conflict, Invalid, NotFound, Unavailable

_PERMISSIONS: Final = tuple(
    {"group": "karpenter.k8s.aws", "resource": "ec2nodeclasses", "verb": verb}
    for verb in ("get", "create", "patch")
)
_BY_OTHER_MEANS: Final = "by other means"


def list_or_unavailable(*, cluster_id: int) -> list[dict[str, Any]]:
    try:
        return node_classes.list_all(cluster_id=cluster_id)
    except ClusterError as error:
        raise Unavailable(f"The cluster cannot be reached: {error}") from error


def read_settings(*, actor: Actor, cluster_id: int, name: str) -> NodeClassSettings:
    """Return the current settings of a node class in the cluster, for actors who may request a change. Raises
    NotFound or Unavailable.
    """
    fleet_policy.require_requester(actor)
    try:
        live = node_classes.get(cluster_id=cluster_id, name=name)
    except ClusterError as error:
        raise Unavailable(f"The cluster cannot be reached: {error}") from error
    if live is None:
        raise NotFound(f"EC2NodeClass {name} does not exist.")
    return node_class_settings.read(live)


def observe_change(action: FleetAction) -> Evidence:
    node_facts.require_permissions(action, *_PERMISSIONS)
    live = _live(action)
    if live is None:
        raise Conflict(f"EC2NodeClass {action.target} does not exist.", code="no_node_class")
    settings = NodeClassSettings.from_json(action.parameters)
    if settings.volume_gib and not node_class_settings.device_of(live["spec"], settings):
        raise Invalid(
            "Slipway does not know the image disk of this AMI family.",
            fields={"volume_gib": "leave it empty"},
        )
    body = node_class_settings.patch(live, settings)
    after = apply_patch(live, body)
    if after == live:
        raise Conflict(
            f"EC2NodeClass {action.target} already has these settings.", code="no_change"
        )
    node_pools.dry_run(action, lambda: _patch(action, body, dry_run=True))
    return _evidence(action, live, after)


def observe_creation(action: FleetAction) -> Evidence:
    node_facts.require_permissions(action, *_PERMISSIONS)
    if _live(action) is not None:
        raise Conflict(f"EC2NodeClass {action.target} already exists.", code="node_class_exists")
    made = _manifest(action)
    node_pools.dry_run(
        action,
        lambda: node_classes.create(cluster_id=action.cluster_id, manifest=made, dry_run=True),
    )
    return _evidence(action, {}, made)


def advance_change(action: FleetAction) -> Outcome:
    live = node_classes.get(cluster_id=action.cluster_id, name=action.target)
    if live is None:
        return outcomes.fail(f"EC2NodeClass {action.target} was deleted.")
    body = node_class_settings.patch(live, NodeClassSettings.from_json(action.parameters))
    if apply_patch(live, body) == live:
        return node_pools.await_ready(action, live)
    if node_pools.generation_of(live) != Evidence.from_json(action.evidence).bound["generation"]:
        message = "Someone changed the EC2NodeClass after the approval. Request the change again."
        return outcomes.fail(message)
    # Of what was read: an edit since then is a conflict, and the next pass sees it.
    version = (live.get("metadata") or {}).get("resourceVersion")
    _patch(action, {**body, "metadata": {"resourceVersion": version}}, dry_run=False)
    return outcomes.go_on("Changed the EC2NodeClass.", after_seconds=0)


def advance_creation(action: FleetAction) -> Outcome:
    live = node_classes.get(cluster_id=action.cluster_id, name=action.target)
    if live is not None:
        if node_class_settings.read(live) == node_class_settings.read(_manifest(action)):
            return node_pools.await_ready(action, live)
        message = f"Someone else created EC2NodeClass {action.target} with other settings. It was not touched."
        return outcomes.fail(message)
    node_classes.create(cluster_id=action.cluster_id, manifest=_manifest(action))
    return outcomes.go_on("Created the EC2NodeClass.", after_seconds=0)


def _live(action: FleetAction) -> dict[str, Any] | None:
    try:
        return node_classes.get(cluster_id=action.cluster_id, name=action.target)
    except ClusterError as error:
        raise Unavailable(f"{action.cluster.name} cannot be reached: {error}") from error


def _patch(action: FleetAction, body: Mapping[str, Any], *, dry_run: bool) -> dict[str, Any]:
    return node_classes.patch(
        cluster_id=action.cluster_id, name=action.target, body=body, dry_run=dry_run
    )


def _manifest(action: FleetAction) -> dict[str, Any]:
    settings = NodeClassSettings.from_json(action.parameters)
    return node_class_settings.manifest(action.target, settings)


def _evidence(action: FleetAction, before: Mapping[str, Any], after: Mapping[str, Any]) -> Evidence:
    return Evidence(
        changes=tuple(_changes(before, after)),
        warnings=tuple(_warnings(action, before, after)),
        yaml_before=node_pools.yaml_of(before) if before else "",
        yaml_after=node_pools.yaml_of(after),
        bound={"generation": node_pools.generation_of(before), "spec": after["spec"]},
    )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    old, new = _named(before), _named(after)
    return [
        FieldChange(label, old[label] if before else "", value)
        for label, value in new.items()
        if not before or old[label] != value
    ]


def _named(live: Mapping[str, Any]) -> dict[str, str]:
    settings = node_class_settings.read(live)
    return {
        "AMI": settings.ami_alias or _BY_OTHER_MEANS,
        "Role": settings.role or "none",
        "Instance profile": settings.instance_profile or "none",
        "Subnets": _tags(settings.subnet_tags),
        "Security groups": _tags(settings.security_group_tags),
        "Disk": f"{settings.volume_gib} GiB" if settings.volume_gib else "the default",
    }


def _tags(texts: Sequence[str]) -> str:
    return ", ".join(texts) or _BY_OTHER_MEANS


def _warnings(
    action: FleetAction, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[str]:
    found, settings = [], node_class_settings.read(after)
    if managers := node_pools.other_managers(before):
        found.append(
            f"{', '.join(managers)} also writes this EC2NodeClass, and may restore its own values."
        )
    if before:
        found += _what_drifts(action)
    if settings.ami_alias.endswith("@latest"):
        found.append(
            "With @latest Karpenter replaces nodes whenever AWS publishes an image. Name a version to choose when."
        )
    if settings.volume_gib is None:
        found.append(
            f"Karpenter's default disk has {SMALLEST_GIB} GiB: images of model servers alone can fill it."
        )
    return found


def _what_drifts(action: FleetAction) -> list[str]:
    """Karpenter replaces nodes that differ from their class."""
    try:
        pools = node_classes.list_pools(cluster_id=action.cluster_id, name=action.target)
    except ClusterError as error:
        return [f"Which node pools use it is not known: {error}"]
    if not pools:
        return []
    label = PoolKind.NODE_POOL.node_label
    rows = Node.objects.filter(cluster_id=action.cluster_id, gone_at=None)
    counted = Counter(
        str(labels.get(label, "")) for labels in rows.values_list("labels", flat=True)
    )
    nodes = sum(counted[name] for name in pools)
    shown = "1 running node" if nodes == 1 else f"{nodes} running nodes"
    return [
        f"Karpenter replaces the {shown} of {', '.join(pools)} (drift), as disruption budgets allow."
    ]
