"""The facts that requests about a node show: its deployments, its price, and what the portal may do there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from fleet.actions.domain.evidence import AffectedDeployment
from fleet.capacity.domain.drain_preview import DrainFit, DrainPreview, MovedPod
from fleet.capacity.services import drain_preview
from fleet.gpus.selectors import prices
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import nodes
from fleet.models import FleetAction, Node
from portal.accounts.policy import SYSTEM
from portal.core import clock
from portal.core.errors import Conflict, Unavailable

PATCH_NODES: Final = {"group": "", "resource": "nodes", "verb": "patch"}
EVICT_PODS: Final = {"group": "", "resource": "pods", "subresource": "eviction", "verb": "create"}


@dataclass(frozen=True, slots=True)
class _Key:
    team_slug: str
    deployment: str
    namespace: str


def present_node(action: FleetAction) -> Node:
    node = action.node
    if node is None or node.gone_at is not None:
        raise Conflict(f"{action.target} left its cluster.", code="node_gone")
    return node


def require_permissions(action: FleetAction, *permissions: Mapping[str, str]) -> None:
    """Raises Conflict that names the fix, before anyone has to approve what would be refused."""
    try:
        missing = [
            permission
            for permission in permissions
            if not nodes.may(cluster_id=action.cluster_id, attributes=permission)
        ]
    except ClusterError as error:
        raise Unavailable(
            f"{action.cluster.name} cannot be reached to check the portal's permissions: {error}"
        ) from error
    if missing:
        named = ", ".join(f"{item['verb']} {_resource(item)}" for item in missing)
        raise Conflict(
            f"The portal may not {named} on {action.cluster.name}. Apply the output of "
            "`manage.py cluster_rbac --fleet-actions` there.",
            code="not_permitted",
        )


def deployments_on(node: Node) -> tuple[AffectedDeployment, ...]:
    return list_affected_deployments(drain_preview.preview(actor=SYSTEM, node_id=node.pk).preview)


def list_affected_deployments(preview: DrainPreview) -> tuple[AffectedDeployment, ...]:
    grouped: dict[_Key, list[MovedPod]] = defaultdict(list)
    for moved in preview.pods:
        pod = moved.pod
        grouped[_Key(pod.team_slug, pod.deployment, pod.namespace)].append(moved)
    return tuple(_row(key, grouped[key]) for key in _ordered(grouped))


def _ordered(keys: Iterable[_Key]) -> list[_Key]:
    return sorted(keys, key=lambda key: (not key.deployment, key.team_slug, key.deployment))


def _row(key: _Key, moved: Sequence[MovedPod]) -> AffectedDeployment:
    return AffectedDeployment(
        team_slug=key.team_slug,
        deployment=key.deployment,
        namespace=key.namespace,
        pods=len(moved),
        gpus=sum(item.pod.size.gpus for item in moved),
        without_room=sum(item.fit is DrainFit.NO_ROOM for item in moved),
    )


def usd_per_hour(node: Node) -> Decimal | None:
    price = prices.book([node.instance_type]).find_node_price(node, clock.now().date())
    return price.usd_per_hour_amount if price else None


def _resource(permission: Mapping[str, str]) -> str:
    subresource = permission.get("subresource", "")
    return f"{permission['resource']}/{subresource}" if subresource else permission["resource"]
