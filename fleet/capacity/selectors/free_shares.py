"""How many replicas of a GPU share find free GPUs, and which of them only with a toleration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from fleet.capacity.domain import node_taints
from fleet.capacity.selectors.node_spaces import NodeSpace
from fleet.gpus.domain import tolerations
from fleet.gpus.domain.capacity_types import ON_DEMAND
from fleet.gpus.domain.offers import GpuShare
from fleet.observation.domain.node_health import Taint


def count_free(share: GpuShare, free: Iterable[tuple[NodeSpace, int]]) -> GpuShare:
    """`free` is the number of replicas that fit on the free GPUs of each node of the share."""
    own = tolerations.list_pod_tolerations(share.gpu_resource, share.capacity_type)
    of_any = tolerations.list_pod_tolerations(share.gpu_resource, ON_DEMAND)
    # Of thousands of nodes most have the same taints.
    by_taints: Counter[tuple[Taint, ...]] = Counter()
    for space, replicas in free:
        by_taints[space.taints] += replicas
    now, tainted, for_spot = 0, 0, 0
    taints: list[Taint] = []
    spot_taints: list[Taint] = []
    for of_nodes, replicas in by_taints.items():
        if not replicas:
            continue
        if away := tolerations.list_untolerated(of_nodes, own):
            if not any(map(node_taints.is_of_state, away)):
                tainted += replicas
                taints += away
            continue
        now += replicas
        if away := tolerations.list_untolerated(of_nodes, of_any):
            for_spot += replicas
            spot_taints += away
    return replace(
        share,
        free_now=now,
        free_tainted=tainted,
        taints=node_taints.format_taints(taints),
        free_for_spot=for_spot,
        spot_taints=node_taints.format_taints(spot_taints),
    )
