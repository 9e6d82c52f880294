"""Karpenter's node pools: whether one of them can start a node of a type, and its remaining limit.

Only requirements that follow from the instance type's name are compared: type, family, size, category, generation,
processor, GPUs, and the capacity type. Karpenter evaluates the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from fleet.gpus.domain import ec2_types, neuron, shares
from fleet.gpus.domain.capacity_types import ON_DEMAND, RESERVED, SPOT
from fleet.gpus.domain.shares import WHOLE

_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": operator.gt,
    "Gte": operator.ge,
    "Lt": operator.lt,
    "Lte": operator.le,
}
_CAPACITY: Final = "karpenter.sh/capacity-type"


@dataclass(frozen=True, slots=True)
class KarpenterRequirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePool:
    """A Karpenter node pool. `gpu_limit` None means no limit; `gpus` is the GPU count of its nodes now.
    `neuron_limit` and `neuron_devices` are the same for Neuron devices.
    """

    name: str
    requirements: tuple[KarpenterRequirement, ...] = ()
    gpu_limit: int | None = None
    gpus: int = 0
    is_ready: bool = True
    neuron_limit: int | None = None
    neuron_devices: int = 0

    def get_remaining(self, resource: str) -> int | None:
        """Return how much of the resource the pool may still start. None means no limit."""
        limit, now = self.limit_of(resource)
        return None if limit is None else max(0, limit - now)

    def limit_of(self, resource: str) -> tuple[int | None, int]:
        """Return the limit, None for no limit, and what the pool's nodes have now."""
        if resource == neuron.DEVICE:
            return self.neuron_limit, self.neuron_devices
        return self.gpu_limit, self.gpus

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> NodePool:
        requirements = tuple(
            KarpenterRequirement(item["key"], item["operator"], tuple(item["values"]))
            for item in raw["requirements"]
        )
        of_neuron = (raw["neuron_limit"], raw["neuron_devices"])
        of_gpus = (raw["gpu_limit"], raw["gpus"], raw["is_ready"])
        return cls(raw["name"], requirements, *of_gpus, *of_neuron)


class PoolRequirement(Protocol):
    """A requirement of pods for the nodes that a pool starts (fleet/clusters/domain/node_requirements.py)."""

    @property
    def doubt(self) -> str: ...

    def is_met_by_pool(self, pool: NodePool, instance_type: str) -> bool | None: ...

    def qualify(self, instance_type: str) -> str: ...


@dataclass(frozen=True, slots=True)
class NodeStart:
    """Whether a node can be started, and why; `pool` is the one that would start it. `doubt` says what follows if its
    nodes do not meet a requirement that no pool states. Empty: they meet all.
    """

    ok: bool
    message: str
    pool: str = field(default="")
    doubt: str = ""


def check_start(
    pools: Sequence[NodePool],
    *,
    instance_type: str,
    gpus: int,
    requirements: Sequence[PoolRequirement] = (),
    resource: str = WHOLE,
) -> NodeStart:
    """Check whether a pool can start the nodes. `gpus` is how many GPUs, or Neuron devices by `resource`, are needed."""
    allowing = [pool for pool in pools if _allows(pool, instance_type, requirements)]
    if not allowing:
        names = ", ".join(pool.name for pool in pools) or "there is none"
        nodes = instance_type
        for requirement in requirements:
            nodes = requirement.qualify(nodes)
        return NodeStart(ok=False, message=f"No node pool starts {nodes} ({names}).")
    ready = [pool for pool in allowing if pool.is_ready]
    if not ready:
        return NodeStart(ok=False, message=f"Node pool {allowing[0].name} is not ready.")
    left = {pool.name: pool.get_remaining(resource) for pool in ready}
    roomy = [pool for pool in ready if (room := left[pool.name]) is None or room >= gpus]
    if not roomy:
        full = ready[0]
        limit, now = full.limit_of(resource)
        message = (
            f"Node pool {full.name} is limited to {shares.format_count(limit or 0, resource)} and has {now}; "
            f"{gpus} more are needed."
        )
        return NodeStart(ok=False, message=message)
    roomy.sort(key=lambda pool: bool(_doubt(pool, instance_type, requirements)))
    # Whether a reservation has room, only AWS knows: a pool that can do without comes first.
    paid = [pool for pool in roomy if starts(pool, instance_type) - {RESERVED}]
    chosen = (paid or roomy)[0]
    condition = "" if paid else " if its reservation has room"
    message = f"Node pool {chosen.name} will start a {instance_type}{condition}, which takes a few minutes."
    doubt = _doubt(chosen, instance_type, requirements)
    return NodeStart(ok=True, message=message, pool=chosen.name, doubt=doubt)


def _allows(pool: NodePool, instance_type: str, requirements: Sequence[PoolRequirement]) -> bool:
    """Whether the pool starts nodes of the type which meet all that can be known of the requirements."""
    return bool(starts(pool, instance_type)) and all(
        requirement.is_met_by_pool(pool, instance_type) is not False for requirement in requirements
    )


def _doubt(pool: NodePool, instance_type: str, requirements: Sequence[PoolRequirement]) -> str:
    unknown = (r.doubt for r in requirements if r.is_met_by_pool(pool, instance_type) is None)
    return next(unknown, "")


def sets_label(pool: NodePool, name: str, value: str) -> bool | None:
    """Whether the nodes of the pool get the label if a pod requires it. None: its requirements do not name it."""
    stated = [requirement for requirement in pool.requirements if requirement.key == name]
    if not stated:
        return None
    return all(_meets(requirement, {name: value}) for requirement in stated)


def starts(pool: NodePool, instance_type: str) -> frozenset[str]:
    """Return the capacity types in which the pool starts nodes of the type; empty if it starts none."""
    labels = ec2_types.derive_labels(instance_type)
    if not all(_meets(requirement, labels) for requirement in pool.requirements):
        return frozenset()
    on_capacity = [requirement for requirement in pool.requirements if requirement.key == _CAPACITY]
    # Without this requirement Karpenter starts on-demand nodes only.
    on_capacity = on_capacity or [KarpenterRequirement(_CAPACITY, "In", (ON_DEMAND,))]
    return frozenset(
        kind
        for kind in (ON_DEMAND, RESERVED, SPOT)
        if all(_meets(requirement, {_CAPACITY: kind}) for requirement in on_capacity)
    )


def _meets(requirement: KarpenterRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if value is None:
        return True
    values = requirement.values
    if requirement.operator in _COMPARISONS:
        return _compares(requirement.operator, value, values)
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": True,
        "DoesNotExist": False,
    }.get(requirement.operator, True)


def _compares(how: str, value: str, values: Sequence[str]) -> bool:
    if not values or not values[0].isdigit() or not value.isdigit():
        return True
    return _COMPARISONS[how](int(value), int(values[0]))


def parse_pools(items: Iterable[Mapping[str, Any]]) -> tuple[NodePool, ...]:
    """Parse NodePool objects, ordered by name."""
    return tuple(sorted((_pool(item) for item in items), key=lambda pool: pool.name))


def node_class_group(item: Mapping[str, Any]) -> str:
    """Return the API group of a NodePool's node class: karpenter.k8s.aws, or eks.amazonaws.com of EKS Auto Mode."""
    template = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
    return str((template.get("nodeClassRef") or {}).get("group", ""))


def _pool(item: Mapping[str, Any]) -> NodePool:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    inner = ((spec.get("template") or {}).get("spec")) or {}
    conditions = status.get("conditions") or []
    ready = next((entry["status"] for entry in conditions if entry.get("type") == "Ready"), "True")
    limits, resources = spec.get("limits") or {}, status.get("resources") or {}
    return NodePool(
        name=item["metadata"]["name"],
        requirements=tuple(
            KarpenterRequirement(
                entry["key"], entry["operator"], tuple(map(str, entry.get("values") or ()))
            )
            for entry in inner.get("requirements") or ()
        ),
        gpu_limit=_limit(limits, WHOLE),
        gpus=_count(resources.get(WHOLE)),
        is_ready=ready != "False",
        neuron_limit=_limit(limits, neuron.DEVICE),
        neuron_devices=_count(resources.get(neuron.DEVICE)),
    )


def _limit(limits: Mapping[str, Any], resource: str) -> int | None:
    return None if limits.get(resource) is None else _count(limits[resource])


def _count(amount: Any) -> int:
    return int(amount) if str(amount or "").isdigit() else 0
