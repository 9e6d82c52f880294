"""The preview of a drain: observed pods and nodes, and the cluster's disruption budgets as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fleet.capacity.domain import drain_preview
from fleet.capacity.domain.drain_preview import Budget, DrainablePod, DrainPreview, OtherNode
from fleet.capacity.domain.node_space import Amounts
from fleet.capacity.selectors import node_details, node_spaces
from fleet.gpus.domain import tolerations
from fleet.gpus.domain.tolerations import Toleration
from fleet.gpus.selectors import prices
from fleet.kube.domain.errors import ClusterError
from fleet.kube.domain.label_selectors import LabelSelector
from fleet.kube.domain.resource_types import DISRUPTION_BUDGET
from fleet.kube.services import objects
from fleet.models import Node, Pod
from fleet.observation.domain import node_health
from portal.accounts import fleet_policy, policy
from portal.accounts.policy import Actor
from portal.core import clock
from portal.core.errors import Conflict


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """A preview of a node's drain with its costs. `problem` is why budgets are not known. The node costs its price
    until it is removed.
    """

    node: Node
    preview: DrainPreview
    usd_per_hour_amount: Decimal | None
    problem: str


def preview(*, actor: Actor, node_id: int) -> NodeDrain:
    """Preview a drain without changing anything, for actors who may request one. Pods of teams that they may not
    see have no names.
    """
    fleet_policy.require_requester(actor)
    node = node_details.get_node(node_id)
    if node.gone_at is not None:
        raise Conflict(f"{node} left its cluster, so there is nothing to drain.", code="node_gone")
    pods = [_pod(row, node) for row in _pods_on(node)]
    problem = ""
    budgets: list[Budget] | None
    try:
        budgets = list(_budgets(node.cluster_id, {pod.namespace for pod in pods}))
    except ClusterError as error:
        budgets, problem = None, str(error)
    price = prices.book([node.instance_type]).find_node_price(node, clock.now().date())
    whole = drain_preview.preview(pods, _others(node, pods), budgets)
    return NodeDrain(
        node=node,
        preview=whole if policy.sees_all(actor) else drain_preview.hide(whole, _slugs(actor)),
        usd_per_hour_amount=price.usd_per_hour_amount if price else None,
        problem=problem,
    )


def _slugs(actor: Actor) -> frozenset[str]:
    return frozenset(policy.visible_teams(actor).values_list("slug", flat=True))


def _pods_on(node: Node) -> Iterable[Pod]:
    rows = Pod.objects.filter(node=node, gone_at=None, ended_at=None)
    return rows.select_related("workload__team").order_by("namespace", "name")


def _pod(row: Pod, node: Node) -> DrainablePod:
    workload = row.workload
    return DrainablePod(
        namespace=row.namespace,
        name=row.name,
        team_slug=workload.team.slug if workload else "",
        deployment=str(workload.labels.get("deployment", "")) if workload else "",
        labels=tuple(sorted(row.labels.items())),
        gpu_resource=row.gpu_resource,
        size=Amounts(row.gpu_units, row.cpu_millicores, row.memory_bytes),
        instance_types=_types_of(row, node) if workload else None,
    )


def _types_of(row: Pod, node: Node) -> tuple[str, ...]:
    """Pods of workloads select nodes by instance type; those observed before that was recorded go to nodes
    like this one.
    """
    return tuple(row.instance_types) or (node.instance_type,)


def _others(node: Node, pods: Sequence[DrainablePod]) -> list[OtherNode]:
    """Nodes of the types that pods which can move may run on. They tolerate the taints of the node that they are on."""
    own = [Toleration(t.key, t.effect, t.value) for t in node_health.read_taints(node.taints)]
    types = {name for pod in pods for name in pod.instance_types or ()}
    resources = {pod.gpu_resource for pod in pods}
    return [
        OtherNode(space.node.name, space.node.instance_type, resource, space.room(resource))
        for space in node_spaces.list_spaces(node.cluster_id, instance_types=types)
        if space.node.pk != node.pk and space.node.is_ready and space.node.is_schedulable
        for resource in sorted(resources)
        if not space.keeping_away(
            (*tolerations.list_pod_tolerations(resource, node.capacity_type), *own)
        )
    ]


def _budgets(cluster_id: int, namespaces: set[str]) -> Iterable[Budget]:
    for namespace in sorted(namespaces):
        for item in objects.list_objects(
            cluster_id=cluster_id,
            api_version=DISRUPTION_BUDGET.api_version,
            kind=DISRUPTION_BUDGET.kind,
            namespace=namespace,
            labels={},
        ):
            yield _budget(namespace, item)


def _budget(namespace: str, item: dict[str, Any]) -> Budget:
    """The status of an older generation says nothing of the budget as it is now."""
    metadata, status = item["metadata"], item.get("status") or {}
    is_current = status.get("observedGeneration") == metadata.get("generation")
    allowed = status.get("disruptionsAllowed")
    return Budget(
        namespace=namespace,
        name=str(metadata["name"]),
        selector=LabelSelector.from_json((item.get("spec") or {}).get("selector") or {}),
        allowed=int(allowed) if is_current and allowed is not None else None,
    )
