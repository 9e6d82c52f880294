"""Who waits for which GPU, why, and what would free it. A decision on what was last read of pods, nodes and queues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from fleet.gpus.domain import shares
from portal.core.definitions.counts import format_count

# What Kubernetes says of a pod that something else has to admit first.
GATED: Final = "SchedulingGated"
# More suggestions than a person reads in one line.
_MOST_HOLDERS: Final = 3
_INSUFFICIENT: Final = re.compile(r"\d+ Insufficient ([\w./-]*\w)")
_CPU: Final = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk"}
_MISMATCH: Final = re.compile(
    r"didn't match Pod's node (affinity|selector)|didn't match node selector|incompatible (with|req)"
)
_TAINT: Final = re.compile(r"untolerated taint|had taint", re.IGNORECASE)
_VOLUME: Final = re.compile(r"volume|persistentvolumeclaim", re.IGNORECASE)


class WaiterKind(StrEnum):
    DEPLOYMENT = "Deployment"
    BATCH_JOB = "Batch job"
    OTHER = "Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """The place in a queue of Kueue. `position` counts from 1; None is not known. `why` is what Kueue says. The name
    of the queue is empty if it is not known.
    """

    queue: str = ""
    position: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """Pods of one workload that wait and request the same. `units` of the resource are requested by each of its
    `pods`. `since` is when the oldest of them was created. Without instance types any node will do.
    """

    kind: WaiterKind
    cluster_id: int
    cluster_name: str
    team_slug: str
    name: str
    is_visible: bool
    resource: str
    units: int
    since: datetime
    pods: int = 1
    instance_types: tuple[str, ...] = ()
    namespace: str = ""
    workload_name: str = ""
    reason: str = ""
    message: str = ""
    place: QueuePlace | None = None

    @property
    def requested(self) -> str:
        """Describe all that it requests: "2 GPUs of g5.xlarge", for example."""
        return _name_units(self, self.units * self.pods)

    @property
    def key(self) -> tuple[int, str, str]:
        """The cluster, namespace and name of its workload."""
        return (self.cluster_id, self.namespace, self.workload_name)


@dataclass(frozen=True, slots=True)
class NodeUnits:
    """The units of one resource on one node. A node that takes no further pods has nothing free."""

    cluster_id: int
    instance_type: str
    resource: str
    whole: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleHolder:
    """A deployment that had no request for days, and the units that it holds on nodes of one type."""

    cluster_id: int
    team_slug: str
    deployment: str
    is_visible: bool
    resource: str
    instance_type: str
    units: int
    idle_days: int


@dataclass(frozen=True, slots=True)
class Relief:
    """The ways to let a waiter start: `needed`, and either of `holders` scaled down or one of `alternatives`, which
    are commands. Without `needed` only time is needed, and `alternatives` say so.
    """

    needed: str
    holders: tuple[IdleHolder, ...] = ()
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingRow:
    waiter: Waiter
    why: str
    relief: Relief


def group_waiters(waiters: Iterable[Waiter]) -> list[Waiter]:
    """Join pods of the same workload that request the same. The longest wait comes first."""
    groups: dict[tuple[object, ...], Waiter] = {}
    for waiter in sorted(waiters, key=lambda waiter: waiter.since):
        name = waiter.workload_name or waiter.name
        key = (waiter.cluster_id, waiter.team_slug, name, waiter.resource, waiter.units)
        first = groups.get(key) if waiter.is_visible else None
        if first is None:
            # Pods of other teams have no name that tells them apart.
            groups[key if waiter.is_visible else (*key, len(groups))] = waiter
            continue
        groups[key] = replace(first, pods=first.pods + waiter.pods)
    return list(groups.values())


def explain(
    waiters: Iterable[Waiter], nodes: Sequence[NodeUnits], idle: Sequence[IdleHolder]
) -> list[WaitingRow]:
    return [_explain(waiter, nodes, idle) for waiter in waiters]


def _explain(waiter: Waiter, nodes: Sequence[NodeUnits], idle: Sequence[IdleHolder]) -> WaitingRow:
    place = waiter.place or (QueuePlace() if waiter.reason == GATED else None)
    if place is not None:
        return WaitingRow(waiter, _describe_place(place), _relieve_queue(place))
    fitting = [node for node in nodes if _suits(waiter, node)]
    lacking = set(_INSUFFICIENT.findall(waiter.message))
    if waiter.resource not in lacking:
        other = _explain_other(waiter, lacking, fitting)
        if other is not None:
            return other
    return _explain_gpus(waiter, fitting, [one for one in idle if _suits(waiter, one)])


def _explain_gpus(
    waiter: Waiter, nodes: Sequence[NodeUnits], idle: Sequence[IdleHolder]
) -> WaitingRow:
    types = _name_types(waiter)
    if not nodes:
        why = f"No node {types or f'offers {waiter.resource}'}"
        return WaitingRow(waiter, why, Relief(waiter.requested, (), ("add a node",)))
    largest = max(node.whole for node in nodes)
    one = shares.format_count(waiter.units, waiter.resource)
    if largest < waiter.units:
        why = f"No node has {one}; the largest has {largest}"
        options = ("request fewer for each replica", f"add a node with at least {one}")
        return WaitingRow(waiter, why, Relief(f"{one} on one node", (), options))
    free = sum(node.free for node in nodes)
    fits = min(waiter.pods, sum(node.free // waiter.units for node in nodes))
    missing = waiter.pods - fits
    if not missing:
        return WaitingRow(
            waiter,
            f"{one} free by now" if waiter.units == 1 else f"{one} are free by now",
            Relief("", (), ("the scheduler tries again automatically",)),
        )
    count = -(-missing // (largest // waiter.units))
    fixes = ("add a node" if count == 1 else f"add {format_count(count, 'node')}",)
    if waiter.units > 1 and not fits and free >= waiter.units:
        why = (
            f"{shares.format_count(free, waiter.resource)} free, but not {waiter.units} on one node"
        )
        return WaitingRow(
            waiter, why, Relief(f"{one} on one node", _choose(idle, waiter, 1), fixes)
        )
    whole = _name_units(waiter, sum(node.whole for node in nodes))
    why = f"{free or 'None'} of {whole} {'is' if free <= 1 else 'are'} free"
    needed = _name_units(waiter, missing * waiter.units)
    return WaitingRow(waiter, why, Relief(needed, _choose(idle, waiter, missing), fixes))


def _explain_other(
    waiter: Waiter, lacking: set[str], nodes: Sequence[NodeUnits]
) -> WaitingRow | None:
    """Explain a wait for something other than GPUs. None if the message names nothing else."""
    short = sorted(_CPU[name] for name in lacking if name in _CPU)
    if short:
        names = " and ".join(short)
        fixes = (f"request less {names}", f"add a node {_name_types(waiter)}".strip())
        return WaitingRow(
            waiter,
            f"Nodes with free GPUs lack {names}",
            Relief(f"{names} on a node with free GPUs", (), fixes),
        )
    if not nodes:
        return None
    message = waiter.message
    if _TAINT.search(message):
        return WaitingRow(
            waiter,
            "The nodes that are left are reserved by a taint",
            Relief(waiter.requested, (), ("tolerate the taint", "add a node")),
        )
    if _VOLUME.search(message):
        return WaitingRow(
            waiter,
            "Its volume is not available on a node with free GPUs",
            Relief("Its volume", (), ("check the claim of the volume",)),
        )
    if _MISMATCH.search(message):
        return WaitingRow(
            waiter,
            "No node has the type, zone and labels requested",
            Relief(waiter.requested, (), ("change its placement", "add a node")),
        )
    return None


def _describe_place(place: QueuePlace) -> str:
    where = f"queue {place.queue}" if place.queue else "a queue"
    where = (
        f"In {where}" if place.position is None else f"{format_ordinal(place.position)} in {where}"
    )
    return f"{where}: {place.why}" if place.why else where


def format_ordinal(number: int) -> str:
    """Format a place: "1st", "2nd", "11th"."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _relieve_queue(place: QueuePlace) -> Relief:
    first = "wait until admitted workloads end"
    if place.position == 2:
        first = "wait for the workload before it"
    elif place.position is not None and place.position > 2:
        first = f"wait for the {place.position - 1} workloads before it"
    queue = f"queue {place.queue}" if place.queue else "its queue"
    return Relief(f"Quota of {queue}", (), (first, "raise its quota"))


def _choose(idle: Sequence[IdleHolder], waiter: Waiter, pods: int) -> tuple[IdleHolder, ...]:
    """Choose idle deployments that hold what `pods` of the waiter need: the longest idle first."""
    chosen: list[IdleHolder] = []
    needed = pods * waiter.units
    for holder in sorted(idle, key=lambda one: (-one.idle_days, -one.units, one.deployment)):
        if needed <= 0 or len(chosen) == _MOST_HOLDERS:
            break
        chosen.append(holder)
        needed -= holder.units
    return tuple(chosen)


def _suits(waiter: Waiter, one: NodeUnits | IdleHolder) -> bool:
    return (
        one.cluster_id == waiter.cluster_id
        and one.resource == waiter.resource
        and (not waiter.instance_types or one.instance_type in waiter.instance_types)
    )


def _name_units(waiter: Waiter, units: int) -> str:
    return f"{shares.format_count(units, waiter.resource)} {_name_types(waiter)}".strip()


def _name_types(waiter: Waiter) -> str:
    return f"of {' or '.join(waiter.instance_types)}" if waiter.instance_types else ""
