"""One node as last observed: what it is, its price, its health and how its GPUs are divided."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.db.models import QuerySet

from fleet.capacity.domain import node_taints
from fleet.capacity.domain.overview import GpuTile
from fleet.capacity.selectors import node_devices, notices, overview
from fleet.capacity.selectors.node_devices import NodeDevices
from fleet.gpus.domain import shares
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price
from fleet.models import Node
from fleet.observation.domain import node_health
from fleet.observation.domain.gpu_errors import GpuError
from fleet.observation.domain.node_health import Condition, Taint
from fleet.observation.domain.node_notices import Notice
from portal.accounts.policy import Actor
from portal.core import clock
from portal.core.errors import NotFound

_MIG_CONFIG: Final = "nvidia.com/mig.config"
_MIG_STATE: Final = "nvidia.com/mig.config.state"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the GPUs are divided: whole, mig, mps, shared (time-sliced), or claimed by device. `slices` are MIG profiles with their number, for example 1g.10gb."""

    mode: str
    replicas: int
    slices: tuple[tuple[str, int], ...]
    # The MIG layout requested of the MIG manager and its progress; empty without one.
    mig_config: str
    mig_state: str


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """The details of a node. `price` is None if it is unknown; `tiles` is what holds its GPUs now."""

    node: Node
    price: Price | None
    sharing: Sharing
    conditions: tuple[Condition, ...]
    taints: tuple[Taint, ...]
    tiles: tuple[GpuTile, ...]
    notices: tuple[Notice, ...]
    gpu_errors: tuple[GpuError, ...]
    # Those that pods claim; without rows the node has none.
    devices: NodeDevices

    @property
    def neuron_cores(self) -> int:
        """The number of NeuronCores of each device. 0 if the node has GPUs."""
        return shares.read_node(self.node).neuron_cores

    @property
    def all_neuron_cores(self) -> int:
        return self.node.gpu_count * self.neuron_cores

    @property
    def reserved_by(self) -> tuple[str, ...]:
        """The taints that a pod has to tolerate to start here, but for those that every pod tolerates."""
        node = self.node
        return node_taints.list_reserving_taints(
            self.taints, gpu_product=node.gpu_product, capacity_type=node.capacity_type
        )

    @property
    def problems(self) -> tuple[Condition, ...]:
        return tuple(item for item in self.conditions if item.is_healthy is not True)

    @property
    def usd_per_hour_amount(self) -> Decimal | None:
        return self.price.usd_per_hour_amount if self.price else None

    @property
    def mig_slices(self) -> dict[str, int]:
        return dict(self.sharing.slices)


def present_ids(uids: Collection[str]) -> dict[str, int]:
    """Return the nodes that are there now, by uid."""
    rows = (
        Node.objects.filter(uid__in=uids, gone_at=None).order_by() if uids else Node.objects.none()
    )
    return dict(rows.values_list("uid", "pk"))


def get_node(node_id: int) -> Node:
    """Return a node, also one that is gone. Everyone may see nodes; what ran on them is filtered."""
    node = (
        Node.objects.select_related("cluster")
        .defer("cluster__capabilities", "cluster__serving")
        .filter(pk=node_id)
        .first()
    )
    if node is None:
        raise NotFound(f"There is no node {node_id}.")
    return node


def details(*, actor: Actor, node_id: int) -> NodeDetails:
    node = get_node(node_id)
    day = (node.gone_at or clock.now()).date()
    views = overview.list_nodes(actor=actor, ids=[node.pk])
    return NodeDetails(
        node=node,
        price=prices.book([node.instance_type]).find_node_price(node, day),
        sharing=read_sharing(node),
        conditions=node_health.read_conditions(node.conditions),
        taints=node_health.read_taints(node.taints),
        tiles=() if node.gone_at else views[0].tiles,
        notices=notices.list_node_notices(node),
        gpu_errors=() if node.gone_at else notices.list_gpu_errors(node),
        devices=node_devices.read_node_devices(node, actor=actor),
    )


def read_sharing(node: Node) -> Sharing:
    gpus = shares.read_node(node)
    slices = tuple(
        (name.removeprefix(shares.MIG_PREFIX), int(amount))
        for name, amount in sorted(node.allocatable.items())
        if name.startswith(shares.MIG_PREFIX) and str(amount).isdigit() and int(amount)
    )
    if gpus.single_profile and not slices:
        whole = str(node.allocatable.get(shares.WHOLE, "0"))
        slices = ((gpus.single_profile, int(whole) if whole.isdigit() else 0),)
    mode = "mig" if slices else shares.sharing(shares.WHOLE, gpus)
    if not slices and shares.WHOLE not in node.allocatable and node.claimable:
        mode = "claimed"
    return Sharing(
        mode=mode,
        replicas=gpus.replicas,
        slices=slices,
        mig_config=str(node.labels.get(_MIG_CONFIG, "")),
        mig_state=str(node.labels.get(_MIG_STATE, "")),
    )


def list_gone() -> QuerySet[Node]:
    """List the GPU nodes that left their clusters, the last one first."""
    gone = Node.objects.exclude(gone_at=None).filter(gpu_count__gt=0)
    return gone.select_related("cluster").defer("cluster__capabilities").order_by("-gone_at", "-pk")
