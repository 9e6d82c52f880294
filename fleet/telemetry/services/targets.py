"""The pods whose model servers are read."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.gpus.domain import shares
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Pod
from fleet.telemetry.selectors.current import WorkloadKey

logger = logging.getLogger(__name__)

# Of a cluster's clock and the portal's.
_CLOCK_DIFFERENCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Target:
    pod_id: int
    cluster: Cluster
    workload_id: int
    namespace: str
    name: str
    workload: str
    created_at: datetime
    registered_at: datetime
    port: int
    path: str
    models: tuple[str, ...]
    has_whole_gpus: bool
    client: KubeClient

    @property
    def workload_key(self) -> WorkloadKey:
        return WorkloadKey(self.cluster.pk, self.namespace, self.workload)

    @property
    def is_of_workload(self) -> bool:
        """Whether the pod is of its workload's revision. False for one of an earlier revision with the same name
        that still ends.
        """
        return self.created_at > self.registered_at - _CLOCK_DIFFERENCE


def list_targets(workload_ids: Collection[int] | None) -> list[Target]:
    """List the running pods of these workloads, or of all, on clusters that respond, by workload."""
    pods = Pod.objects.filter(
        phase="Running", gone_at=None, ended_at=None, workload__isnull=False
    ).select_related("workload", "cluster", "node")
    if workload_ids is not None:
        pods = pods.filter(workload_id__in=workload_ids)
    reachable = pods.exclude(cluster__is_reachable=False).order_by("workload_id", "pk")
    targets = []
    by_cluster: dict[int, KubeClient | None] = {}
    for pod in reachable:
        if pod.cluster_id not in by_cluster:
            by_cluster[pod.cluster_id] = _client(pod)
        client = by_cluster[pod.cluster_id]
        if client is not None and pod.workload is not None:
            targets.append(
                Target(
                    pod_id=pod.pk,
                    cluster=pod.cluster,
                    workload_id=pod.workload.pk,
                    namespace=pod.namespace,
                    name=pod.name,
                    workload=pod.workload.name,
                    created_at=pod.created_at,
                    registered_at=pod.workload.created_at,
                    port=pod.workload.metrics_port,
                    path=pod.workload.metrics_path,
                    models=tuple(pod.workload.triton_models),
                    has_whole_gpus=_has_whole_gpus(pod),
                    client=client,
                )
            )
    return targets


def _has_whole_gpus(pod: Pod) -> bool:
    """Whether all memory used on its GPUs is its own."""
    if pod.node is None or pod.gpu_resource != shares.WHOLE or not pod.gpu_units:
        return False
    gpus = shares.read_gpus(pod.node.labels, pod.node.allocatable)
    return gpus.replicas == 1 and not gpus.single_profile


def _client(pod: Pod) -> KubeClient | None:
    try:
        return clients.connect(clients.build_connection(pod.cluster))
    except ClusterError as error:
        logger.warning("no metrics from cluster %s: %s", pod.cluster_id, error.message)
        return None
