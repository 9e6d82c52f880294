"""Whether replicas of one size can be scheduled now, and which resources are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.capacity.domain import node_space, node_taints
from fleet.capacity.domain.node_space import GPU, TAINTS, Amounts, NodeRoom
from fleet.capacity.selectors.node_spaces import NodeSpace
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.gpus.domain import neuron
from fleet.gpus.domain.devices import DeviceRequest
from fleet.gpus.domain.shares import whole_resource
from fleet.gpus.domain.tolerations import Toleration
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price
from fleet.kube.domain import quantities
from fleet.observation.domain.node_health import Taint


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of a fit check. `short_of` names what is missing: GPU, CPU, memory, taints, or the subject of a
    requirement. `is_possible` is False if even an empty node of the type is too small.
    """

    ok: bool
    reason: str
    short_of: tuple[str, ...] = ()
    is_possible: bool = True


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """The size of one replica. Empty `cpu` and `memory` request none; any of the instance types can take it."""

    instance_types: tuple[str, ...]
    gpu_resource: str
    gpus: int
    cpu: str = ""
    memory: str = ""
    # What it requires of its node beside them, in the order in which they are checked.
    requirements: tuple[NodeRequirement, ...] = ()
    # The devices that it claims instead of requesting the resource.
    claim: DeviceRequest | None = None
    tolerations: tuple[Toleration, ...] = ()
    # Of its claim, for taints of devices.
    claim_tolerations: tuple[Toleration, ...] = ()

    @property
    def types(self) -> str:
        """The instance types for people, such as "g5.xlarge or g6.xlarge"."""
        return " or ".join(self.instance_types)

    @property
    def amounts(self) -> Amounts:
        return Amounts(
            self.gpus, quantities.millicores(self.cpu), quantities.whole_bytes(self.memory)
        )


def describe_short(names: Sequence[str], gpu_resource: str) -> str:
    """Describe the missing resources: "GPU or memory"; "Neuron devices or memory" for Neuron devices."""
    own = "Neuron devices" if gpu_resource == neuron.DEVICE else GPU
    return " or ".join(own if name == GPU else name for name in names)


def fits_now(spaces: Sequence[NodeSpace], *, size: ReplicaSize, replicas: int) -> Fit:
    """Whether the replicas fit on the GPUs, CPU and memory that are free now on nodes that meet the requirements,
    of any of the instance types together. `spaces` are those of the whole cluster.
    """
    alike = [
        space.tolerating(size.claim_tolerations)
        for space in spaces
        if space.node.instance_type in size.instance_types
    ]
    if not alike:
        return _without_nodes(size)
    suiting = alike
    for requirement in size.requirements:
        meeting = [space for space in suiting if requirement.is_met_by(space.node)]
        if not meeting:
            nodes = [space.node for space in suiting]
            reason = requirement.describe_unmet(size.types, nodes)
            return Fit(ok=False, reason=reason, short_of=(requirement.subject,))
        suiting = meeting
    offering = [space for space in suiting if _offers(space, size)]
    if not offering:
        what = f"a {size.claim} for claims" if size.claim else size.gpu_resource
        return Fit(ok=False, reason=f"No {size.types} node offers {what}.", short_of=(GPU,))
    return _on_offering(offering, size, replicas)


def _on_offering(offering: Sequence[NodeSpace], size: ReplicaSize, replicas: int) -> Fit:
    """Check the fit on nodes that have the requested GPUs, free or not."""
    rooms = [space.room(size.gpu_resource, size.claim) for space in offering]
    too_large = node_space.too_large(rooms, size.amounts)
    if too_large:
        return _impossible(size, rooms, too_large)
    taints = [space.keeping_away(size.tolerations) for space in offering]
    taking = [space for space, away in zip(offering, taints, strict=True) if not away]
    others = _describe_others([away for away in taints if away], of=len(offering))
    if not taking:
        return _for_others(size, others)
    return _fit_of(size, taking, replicas, others)


def _describe_others(taints: Sequence[tuple[Taint, ...]], *, of: int) -> str:
    """Describe the nodes that do not take the pod: "2 of 3 nodes take only pods that tolerate
    reserved=batch:NoSchedule", for example. Empty if there are none.
    """
    closed = [away for away in taints if any(map(node_taints.is_of_state, away))]
    reserved = [away for away in taints if away not in closed]
    parts = (
        _describe_tainted(reserved, "only pods that tolerate {}", of),
        _describe_tainted(closed, "no new pods now ({})", of),
    )
    return "; ".join(part for part in parts if part)


def _describe_tainted(taints: Sequence[tuple[Taint, ...]], what: str, of: int) -> str:
    if not taints:
        return ""
    named = ", ".join(node_taints.format_taints(taint for away in taints for taint in away))
    take = "takes" if len(taints) == 1 else "take"
    return f"{len(taints)} of {of} node{'' if of == 1 else 's'} {take} {what.format(named)}"


def _for_others(size: ReplicaSize, others: str) -> Fit:
    reason = f"No {size.types} node in the cluster takes these pods now: {others}."
    return Fit(ok=False, reason=reason, short_of=(TAINTS,))


def _offers(space: NodeSpace, size: ReplicaSize) -> bool:
    if size.claim is None:
        return size.gpu_resource in space.node.allocatable
    return space.claimable.units(size.claim) > 0


def _without_nodes(size: ReplicaSize) -> Fit:
    """Check the fit when no node of the type exists. The hardware of the type comes from the price list."""
    known = [prices.find_hardware(name) for name in size.instance_types]
    if all(facts and size.gpu_resource == whole_resource(facts.gpu_name) for facts in known):
        rooms = [_empty_node(facts) for facts in known if facts]
        too_large = node_space.too_large(rooms, size.amounts)
        if too_large:
            return _impossible(size, rooms, too_large)
    return Fit(ok=False, reason=f"There is no {size.types} node in the cluster now.")


def _empty_node(facts: Price) -> NodeRoom:
    whole = Amounts(
        facts.gpu_count,
        quantities.millicores(facts.allocatable_cpu),
        quantities.whole_bytes(facts.allocatable_memory),
    )
    return NodeRoom(whole=whole, free=whole)


def _impossible(size: ReplicaSize, rooms: Sequence[NodeRoom], names: Sequence[str]) -> Fit:
    parts = []
    for name in names:
        largest = max(room.whole.each()[name] or 0 for room in rooms)
        available = node_space.describe(name, largest, size.gpu_resource)
        requested = node_space.describe(name, size.amounts.each()[name], size.gpu_resource)
        parts.append(f"{available}, and a replica requests {requested}")
    reason = f"A {size.types} node has {'; '.join(parts)}."
    return Fit(ok=False, reason=reason, short_of=tuple(names), is_possible=False)


def _fit_of(size: ReplicaSize, offering: Sequence[NodeSpace], replicas: int, others: str) -> Fit:
    rooms = [space.room(size.gpu_resource, size.claim) for space in offering]
    count = node_space.fitting(rooms, size.amounts)
    if count >= replicas:
        verb = "fits" if count == 1 else "fit"
        return Fit(ok=True, reason=f"{count:,} of this size {verb} now.")
    usable = [space.room(size.gpu_resource, size.claim) for space in offering if space.is_usable]
    short = node_space.list_limiting_resources(usable, size.amounts)
    free = [node_space.describe_free(rooms, name, size.gpu_resource) for name in short]
    nodes = f"{len(offering)} node{'' if len(offering) == 1 else 's'}"
    reason = f"{count} of {replicas} fit now"
    if short:
        reason += f": not enough {describe_short(short, size.gpu_resource)} ({', '.join(free)} on {nodes})"
    unusable = len(offering) - len(usable)
    if unusable:
        reason += f"; {unusable} of {nodes} not ready or cordoned"
    if others:
        reason += f"; {others}"
    return Fit(ok=False, reason=f"{reason}.", short_of=tuple(short))
