"""A node with replicas is about to be taken away, or one of its GPUs reports a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict
from fleet.gpus.domain.capacity_types import SPOT
from fleet.observation.domain.node_notices import Notice, NoticeKind

RECLAIM: Final = AlertKind(
    code="node_reclaim",
    label="Node reclaimed",
    advice="Its replicas start again where there is room. To keep serving meanwhile, use more replicas or on-demand nodes.",
)
FAULT: Final = AlertKind(
    code="gpu_fault",
    label="GPU fault",
    advice="A lead drains the node under Fleet, so that its pods move; a platform admin replaces or repairs it.",
)
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class NoticedNode:
    """A node with `replicas` of the deployment, of its `all_replicas`."""

    name: str
    capacity_type: str
    notices: Sequence[Notice]
    replicas: int
    all_replicas: int


def decide_reclaim(nodes: Sequence[NoticedNode]) -> AlertVerdict:
    """Decide on nodes about to be reclaimed. Removals of nodes that are not spot, such as a consolidation, are
    routine and no alert.
    """
    return _decide(nodes, _is_reclaimed)


def decide_fault(nodes: Sequence[NoticedNode]) -> AlertVerdict:
    return _decide(nodes, lambda notice, _: notice.kind == NoticeKind.GPU_FAULT)


def _is_reclaimed(notice: Notice, capacity_type: str) -> bool:
    is_of_spot = notice.kind == NoticeKind.REMOVAL and capacity_type == SPOT
    return notice.kind == NoticeKind.RECLAIM or is_of_spot


def _decide(nodes: Sequence[NoticedNode], is_meant: Callable[[Notice, str], bool]) -> AlertVerdict:
    named, replicas = [], 0
    for node in nodes:
        titles = [n.title for n in node.notices if is_meant(n, node.capacity_type)]
        if titles:
            named.append(f"{node.name} ({', '.join(titles)})")
            replicas += node.replicas
    if not named:
        return AlertVerdict(is_firing=False)
    more = len(named) - _MOST_NAMED
    listed = ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return AlertVerdict(
        is_firing=True,
        message=f"{replicas} of {nodes[0].all_replicas} replicas run on {listed}.",
    )
