"""A preview of draining a node: where its pods would go, and which disruption budgets would block them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fleet.capacity.domain.node_space import Amounts, NodeRoom
from fleet.kube.domain.label_selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class DrainablePod:
    """A pod on the node. `instance_types` are those that it may run on; None: not known, for pods of others."""

    namespace: str
    name: str
    team_slug: str
    deployment: str
    labels: tuple[tuple[str, str], ...]
    gpu_resource: str
    size: Amounts
    instance_types: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. `allowed` None: the cluster did not say yet."""

    namespace: str
    name: str
    selector: LabelSelector
    allowed: int | None

    def covers(self, pod: DrainablePod) -> bool:
        return pod.namespace == self.namespace and self.selector.matches(dict(pod.labels))


@dataclass(frozen=True, slots=True)
class OtherNode:
    """A ready, schedulable node of the cluster, with what is free for pods of one GPU resource."""

    name: str
    instance_type: str
    gpu_resource: str
    room: NodeRoom


class DrainFit(StrEnum):
    FITS = "fits"
    NO_ROOM = "no room"
    UNKNOWN = "not known"


class Hold(StrEnum):
    """The effect of a disruption budget on the evictions of this node."""

    ALLOWS = "allows all"
    STEPWISE = "allows some at a time"
    REFUSES = "allows none now"
    UNKNOWN = "not known"
    # Kubernetes evicts no pod that several budgets cover.
    CONFLICTS = "another budget covers the same pod"


@dataclass(frozen=True, slots=True)
class MovedPod:
    pod: DrainablePod
    fit: DrainFit
    target: str = ""


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """The effect of one disruption budget. `pods` of the node are covered by the budget."""

    budget: Budget
    pods: int
    hold: Hold


@dataclass(frozen=True, slots=True)
class DrainPreview:
    """A preview of a drain. `budgets` is None if the cluster did not respond."""

    pods: tuple[MovedPod, ...]
    budgets: tuple[BudgetVerdict, ...] | None

    def count(self, fit: DrainFit) -> int:
        return sum(1 for moved in self.pods if moved.fit is fit)

    @property
    def fitting(self) -> int:
        return self.count(DrainFit.FITS)

    @property
    def without_room(self) -> int:
        return self.count(DrainFit.NO_ROOM)

    @property
    def held(self) -> int | None:
        """The budgets that would keep the drain waiting. None if they are unknown."""
        if self.budgets is None or any(row.hold is Hold.UNKNOWN for row in self.budgets):
            return None
        return sum(1 for row in self.budgets if row.hold in (Hold.REFUSES, Hold.CONFLICTS))


def preview(
    pods: Sequence[DrainablePod], nodes: Sequence[OtherNode], budgets: Sequence[Budget] | None
) -> DrainPreview:
    verdicts = None if budgets is None else tuple(_verdicts(pods, budgets))
    return DrainPreview(tuple(_place(pods, nodes)), verdicts)


def hide(preview: DrainPreview, team_slugs: Collection[str]) -> DrainPreview:
    """Drop the names of what belongs to other teams. A budget belongs to the team of its namespace."""
    budgets = None if preview.budgets is None else tuple(preview.budgets)
    return DrainPreview(
        tuple(
            moved if moved.pod.team_slug in team_slugs else replace(moved, pod=_unnamed(moved.pod))
            for moved in preview.pods
        ),
        budgets
        and tuple(
            row
            if row.budget.namespace in team_slugs
            else replace(row, budget=replace(row.budget, namespace="", name=""))
            for row in budgets
        ),
    )


def _unnamed(pod: DrainablePod) -> DrainablePod:
    return replace(pod, namespace="", name="", team_slug="", deployment="", labels=())


def _place(pods: Sequence[DrainablePod], nodes: Sequence[OtherNode]) -> list[MovedPod]:
    """Place the pods, largest first, each onto the node that it fills best. Room is shared between resources of a
    node only in CPU and memory; GPUs of each resource are counted apart, as Kubernetes does.
    """
    free = {(node.name, node.gpu_resource): node for node in nodes}
    placed: dict[str, MovedPod] = {}
    for pod in sorted(pods, key=_largest_first):
        placed[f"{pod.namespace}/{pod.name}"] = _place_one(pod, free)
    return [placed[f"{pod.namespace}/{pod.name}"] for pod in pods]


def _place_one(pod: DrainablePod, free: dict[tuple[str, str], OtherNode]) -> MovedPod:
    if pod.instance_types is None:
        return MovedPod(pod, DrainFit.UNKNOWN)
    fitting = [
        node
        for node in free.values()
        if node.instance_type in pod.instance_types
        and node.gpu_resource == pod.gpu_resource
        and node.room.replicas(pod.size) > 0
    ]
    if not fitting:
        return MovedPod(pod, DrainFit.NO_ROOM)
    best = min(fitting, key=lambda node: (node.room.free.gpus, node.name))
    for key, node in free.items():
        if node.name == best.name:
            is_same = node.gpu_resource == pod.gpu_resource
            free[key] = replace(node, room=_taken(node.room, pod.size, with_gpus=is_same))
    return MovedPod(pod, DrainFit.FITS, best.name)


def _taken(room: NodeRoom, size: Amounts, *, with_gpus: bool) -> NodeRoom:
    left = Amounts(
        room.free.gpus - (size.gpus if with_gpus else 0),
        _minus(room.free.cpu_millicores, size.cpu_millicores),
        _minus(room.free.memory_bytes, size.memory_bytes),
    )
    return replace(room, free=left)


def _minus(free: int | None, taken: int | None) -> int | None:
    return None if free is None else max(0, free - (taken or 0))


def _largest_first(pod: DrainablePod) -> tuple[int, int, str, str]:
    return -pod.size.gpus, -(pod.size.memory_bytes or 0), pod.namespace, pod.name


def _verdicts(pods: Sequence[DrainablePod], budgets: Sequence[Budget]) -> Iterable[BudgetVerdict]:
    for budget in budgets:
        covered = [pod for pod in pods if budget.covers(pod)]
        if covered:
            is_alone = not any(
                other.covers(pod) for other in budgets if other is not budget for pod in covered
            )
            yield BudgetVerdict(
                budget, len(covered), _hold(budget, len(covered)) if is_alone else Hold.CONFLICTS
            )


def _hold(budget: Budget, pods: int) -> Hold:
    if budget.allowed is None:
        return Hold.UNKNOWN
    if budget.allowed <= 0:
        return Hold.REFUSES
    return Hold.ALLOWS if budget.allowed >= pods else Hold.STEPWISE
