"""A request to one pod, past every gateway. Raises the ClusterErrors of fleet.domain."""

from __future__ import annotations

from fleet.domain.pod_calls import PodAnswer, PodCall
from fleet.services import clients


def send(*, cluster_id: int, call: PodCall) -> PodAnswer:
    return clients.client_for(cluster_id).pass_on(call)
