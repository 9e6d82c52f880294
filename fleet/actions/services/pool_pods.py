"""Which deployments have pods on the nodes of a node pool."""

from __future__ import annotations

from collections import defaultdict

from fleet.actions.domain.evidence import AffectedDeployment
from fleet.models import Node, Pod
from fleet.office_hours.domain.sizes import PoolKind


def list_deployments(cluster_id: int, kind: PoolKind, name: str) -> tuple[AffectedDeployment, ...]:
    """Return the deployments in a pool as last observed, by team and name; pods of no deployment come last. Whether
    they have room elsewhere is not checked.
    """
    grouped: dict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    for pod in _pods(_nodes(cluster_id, kind, name)):
        workload = pod.workload
        team = workload.team.slug if workload else ""
        deployment = str(workload.labels.get("deployment", "")) if workload else ""
        grouped[team, deployment, pod.namespace].append(pod)
    keys = sorted(grouped, key=lambda key: (not key[1], *key))
    return tuple(_row(key, grouped[key]) for key in keys)


def _row(key: tuple[str, str, str], pods: list[Pod]) -> AffectedDeployment:
    gpus = sum(pod.gpu_units for pod in pods)
    return AffectedDeployment(*key, pods=len(pods), gpus=gpus, without_room=0)


def _nodes(cluster_id: int, kind: PoolKind, name: str) -> list[int]:
    rows = Node.objects.filter(cluster_id=cluster_id, gone_at=None).values_list("pk", "labels")
    return [pk for pk, labels in rows if labels.get(kind.node_label) == name]


def _pods(node_ids: list[int]) -> list[Pod]:
    rows = Pod.objects.filter(node__in=node_ids, gone_at=None, ended_at=None)
    return list(rows.select_related("workload__team"))
