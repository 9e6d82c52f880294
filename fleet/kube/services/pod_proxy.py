"""A request to one pod, bypassing the gateway. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.kube.services import clients


def send(*, cluster_id: int, call: PodRequest) -> PodResponse:
    return clients.client_for(cluster_id).proxy_request(call)
