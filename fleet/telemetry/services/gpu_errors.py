"""Read the last XID of each GPU: from Prometheus where a cluster has one with dcgm-exporter, else from the exporters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.services import prometheus
from fleet.kube.domain.errors import ClusterError
from fleet.kube.domain.resource_types import POD
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Node
from fleet.observation.domain import gpu_errors
from fleet.observation.domain.gpu_errors import GpuError
from fleet.telemetry.domain import dcgm_metrics
from fleet.telemetry.domain.dcgm_metrics import NotDcgm
from portal.core import clock

logger = logging.getLogger(__name__)

# Of the exporter's own chart, and of NVIDIA's GPU operator.
_LABELS: Final = (
    {"app.kubernetes.io/name": "dcgm-exporter"},
    {"app": "nvidia-dcgm-exporter"},
)
_PORT: Final = 9400
_THREADS: Final = 16
_SECONDS: Final = 3.0

Errors = Mapping[str, tuple[GpuError, ...]]


@dataclass(frozen=True, slots=True)
class _Exporter:
    namespace: str
    pod: str
    node: str
    port: int


def read_all() -> int:
    """Return the number of nodes that were read. What cannot be read keeps its last reading, with its time."""
    return sum(
        _record(cluster, _read(cluster)) for cluster in Cluster.objects.exclude(is_reachable=False)
    )


def _read(cluster: Cluster) -> Errors:
    nodes = frozenset(_nodes(cluster).values_list("name", flat=True))
    if not nodes:
        return {}
    if cluster.prometheus_url:
        [result] = prometheus.query(cluster_id=cluster.pk, queries=[dcgm_metrics.QUERY])
        if isinstance(result, PrometheusError):
            logger.info("XIDs of %s: %s", cluster.name, result.message)
        elif found := dcgm_metrics.by_node(result.samples, nodes=nodes):
            return found
    return _of_exporters(cluster)


def _of_exporters(cluster: Cluster) -> Errors:
    try:
        client = clients.connect(clients.connection_of(cluster))
        exporters = _list(client)
    except ClusterError as error:
        logger.info("XIDs of %s: %s", cluster.name, error.message)
        return {}
    found: dict[str, tuple[GpuError, ...]] = {}
    if exporters:
        with ThreadPoolExecutor(min(_THREADS, len(exporters))) as pool:
            for errors in pool.map(lambda exporter: _page(client, exporter), exporters):
                found.update(errors)
    return found


def _list(client: KubeClient) -> list[_Exporter]:
    pods = [pod for labels in _LABELS for pod in client.list_all(POD, labels=labels).items]
    by_name = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in pods}
    return [
        _Exporter(namespace, name, pod["spec"]["nodeName"], _port(pod))
        for (namespace, name), pod in sorted(by_name.items())
        if (pod.get("status") or {}).get("phase") == "Running" and pod["spec"].get("nodeName")
    ]


def _port(pod: Mapping[str, Any]) -> int:
    """The port that is called metrics, as both charts call it."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == "metrics":
                return int(port["containerPort"])
    return _PORT


def _page(client: KubeClient, exporter: _Exporter) -> Errors:
    try:
        text = client.proxy_get(
            exporter.namespace, exporter.pod, exporter.port, "metrics", seconds=_SECONDS
        )
        samples = dcgm_metrics.parse_page(text)
    except (ClusterError, NotDcgm) as error:
        logger.info("no XIDs from %s/%s: %s", exporter.namespace, exporter.pod, error)
        return {}
    return dcgm_metrics.by_node(samples, nodes=(), node=exporter.node)


def _nodes(cluster: Cluster) -> Any:
    return Node.objects.filter(cluster=cluster, gone_at=None, gpu_count__gt=0)


def _record(cluster: Cluster, found: Errors) -> int:
    if not found:
        return 0
    at = clock.now()
    nodes: Sequence[Node] = list(_nodes(cluster).filter(name__in=found).only("pk", "name", "xids"))
    for node in nodes:
        before = gpu_errors.read(node.xids)
        node.xids = gpu_errors.with_since(found[node.name], before, now=at.isoformat())
        node.xids_read_at = at
    Node.objects.bulk_update(nodes, ["xids", "xids_read_at"], batch_size=500)
    return len(nodes)
