"""Total and free GPUs, CPU and memory of GPU nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Min, QuerySet, Sum

from fleet.capacity.domain.node_space import Amounts, NodeRoom
from fleet.capacity.selectors import node_devices
from fleet.gpus.domain import (
    device_taints,
    device_tolerations,
    devices,
    neuron,
    shares,
    tolerations,
)
from fleet.gpus.domain import instance_types as type_names
from fleet.gpus.domain.devices import NONE, DeviceRequest, Devices
from fleet.gpus.domain.tolerations import Toleration
from fleet.kube.domain import quantities
from fleet.models import Cluster, Node, Pod
from fleet.observation.domain import node_health
from fleet.observation.domain.node_health import Taint

# A form reads thousands of nodes.
_STATE: Final = (
    *("conditions", "xids", "xids_read_at", "resource_version", "zone"),
    *("neuron_utilisation", "neuron_memory_mib", "neuron_read_at"),
    *("first_seen_at", "last_seen_at"),
)


@dataclass(frozen=True, slots=True)
class NodeSpace:
    node: Node
    gpus: shares.NodeGpus
    free: dict[str, int]
    free_cpu_millicores: int | None
    free_memory_bytes: int | None
    claimable: Devices = NONE
    # Pool and name of devices that a claim holds.
    taken_devices: frozenset[tuple[str, str]] = frozenset()
    taints: tuple[Taint, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the node is ready and not cordoned. Otherwise it has nothing free."""
        return self.node.is_ready and self.node.is_schedulable

    @property
    def is_requestable(self) -> bool:
        """Whether pods can require its nodes by their instance type."""
        node = self.node
        return type_names.is_requestable(node.instance_type, node.gpu_product, node.labels)

    def tolerating(self, tolerated: Sequence[Toleration]) -> NodeSpace:
        """Return this space as a claim with these tolerations sees it."""
        if not tolerated or not self.node.tainted_gpus:
            return self
        tainted = device_taints.from_json(self.node.tainted_gpus)
        seen = device_tolerations.apply_tolerations(self.claimable, tainted, tolerated)
        return replace(self, claimable=seen)

    def keeping_away(self, tolerated: Sequence[Toleration]) -> tuple[Taint, ...]:
        """Return the taints that keep a pod with these away from a node that would take it otherwise."""
        if not self.taints or not self.is_usable:
            return ()
        return tolerations.list_untolerated(self.taints, tolerated)

    def free_devices(self, request: DeviceRequest) -> int:
        return self.claimable.units(request, self.taken_devices) if self.is_usable else 0

    def room(self, resource: str, claim: DeviceRequest | None = None) -> NodeRoom:
        """Return the room for pods that request the resource or, with `claim`, devices that it selects."""
        allocatable = self.node.allocatable
        whole, free = count_units(self.node, resource), self.free.get(resource, 0)
        if claim is not None:
            whole, free = self.claimable.units(claim), self.free_devices(claim)
        return NodeRoom(
            whole=Amounts(
                whole,
                quantities.millicores(allocatable.get("cpu")),
                quantities.whole_bytes(allocatable.get("memory")),
            ),
            free=Amounts(free, self.free_cpu_millicores, self.free_memory_bytes),
        )


def list_kinds(cluster_id: int) -> set[tuple[str, str]]:
    """Return the instance and capacity types of GPU nodes that exist."""
    rows = _gpu_nodes(cluster_id).order_by()
    return set(rows.values_list("instance_type", "capacity_type").distinct())


def list_spaces(
    cluster_id: int, *, instance_types: Collection[str] | None = None
) -> list[NodeSpace]:
    """List the spaces of nodes, counting the pods that Slipway observes: those of workloads, and those that hold a
    GPU. `instance_types` None means all types. The nodes come without the fields about their health.
    """
    nodes, pods = _gpu_nodes(cluster_id).defer(*_STATE), _pods(cluster_id)
    if instance_types is not None:
        nodes = nodes.filter(instance_type__in=instance_types)
        pods = pods.filter(node__instance_type__in=instance_types)
    taken = (
        pods.values_list("node_id", "gpu_resource")
        .annotate(Sum("gpu_units"), Sum("cpu_millicores"), Sum("memory_bytes"))
        .order_by()
    )
    used: dict[int | None, dict[str, Amounts]] = defaultdict(dict)
    for node_id, resource, units, cpu, memory in taken:
        used[node_id][resource] = Amounts(units, cpu, memory)
    present = list(_in(cluster_id, nodes))
    held = (
        node_devices.read_claims_by_device(cluster_id)
        if any(node.claimable for node in present)
        else {}
    )
    return [_space(node, used.get(node.pk, {}), frozenset(held)) for node in present]


def one_of_each(cluster_id: int) -> list[NodeSpace]:
    """Return one space of nodes that are alike in all that a pod may request, as if nothing ran on it."""
    alike = (
        _gpu_nodes(cluster_id)
        .order_by()
        .values(
            "instance_type",
            "capacity_type",
            "is_ready",
            "is_schedulable",
            "allocatable",
            "claimable",
        )
    )
    firsts = alike.annotate(first=Min("pk")).values_list("first", flat=True)
    nodes = _gpu_nodes(cluster_id).filter(pk__in=list(firsts)).defer(*_STATE)
    return [_space(node, {}, frozenset()) for node in _in(cluster_id, nodes)]


def _pods(cluster_id: int) -> QuerySet[Pod]:
    return Pod.objects.filter(cluster_id=cluster_id, gone_at=None, ended_at=None).exclude(node=None)


def _gpu_nodes(cluster_id: int) -> QuerySet[Node]:
    return Node.objects.filter(cluster_id=cluster_id, gone_at=None, gpu_count__gt=0)


def _in(cluster_id: int, nodes: QuerySet[Node]) -> Iterator[Node]:
    # Read once: joined, its capabilities would come with each node.
    cluster = Cluster.objects.filter(pk=cluster_id).order_by().first()
    if cluster is None:
        return
    for node in nodes:
        node.cluster = cluster
        yield node


def _space(
    node: Node, used: dict[str, Amounts], taken_devices: frozenset[tuple[str, str]]
) -> NodeSpace:
    """A node that is cordoned or not ready has nothing free."""
    claimable = devices.from_json(node.claimable)
    gpus = shares.read_gpus(node.labels, node.allocatable, claimable)
    taints = node_health.read_taints(node.taints)
    if not (node.is_ready and node.is_schedulable):
        return NodeSpace(node, gpus, {}, 0, 0, claimable, taken_devices, taints)
    offered = {name: count_units(node, name) for name in node.allocatable if shares.is_gpu(name)}
    taken = {name: amounts.gpus for name, amounts in used.items()}
    return NodeSpace(
        node,
        gpus,
        _free_units(offered, taken, gpus),
        _left(
            quantities.millicores(node.allocatable.get("cpu")),
            sum(amounts.cpu_millicores or 0 for amounts in used.values()),
        ),
        _left(
            quantities.whole_bytes(node.allocatable.get("memory")),
            sum(amounts.memory_bytes or 0 for amounts in used.values()),
        ),
        claimable,
        taken_devices,
        taints,
    )


def _free_units(
    offered: dict[str, int], taken: dict[str, int], gpus: shares.NodeGpus
) -> dict[str, int]:
    if gpus.neuron_cores:
        of_neuron = {name: n for name, n in offered.items() if name in neuron.RESOURCES}
        return neuron.free_units(of_neuron, taken, gpus.neuron_cores)
    return {name: max(0, units - taken.get(name, 0)) for name, units in offered.items()}


def _left(whole: int | None, taken: int) -> int | None:
    return None if whole is None else max(0, whole - taken)


def count_units(node: Node, resource: str) -> int:
    amount = str(node.allocatable.get(resource, "0"))
    return int(amount) if amount.isdigit() else 0
