"""Read the last XID of each GPU: from Prometheus where a cluster has one with dcgm-exporter, else from the exporters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.services import prometheus
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Node
from fleet.observation.domain import gpu_errors
from fleet.observation.domain.gpu_errors import GpuError
from fleet.telemetry.domain import dcgm_metrics
from fleet.telemetry.domain.dcgm_metrics import NotDcgm
from fleet.telemetry.services import exporters
from fleet.telemetry.services.exporters import Exporter
from portal.core import clock

logger = logging.getLogger(__name__)

# Of the exporter's own chart, and of NVIDIA's GPU operator.
_LABELS: Final = (
    {"app.kubernetes.io/name": "dcgm-exporter"},
    {"app": "nvidia-dcgm-exporter"},
)
_PORT: Final = 9400

Errors = Mapping[str, tuple[GpuError, ...]]


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
        client = clients.connect(clients.build_connection(cluster))
        pods = exporters.list_exporters(client, _LABELS, port=_PORT)
    except ClusterError as error:
        logger.info("XIDs of %s: %s", cluster.name, error.message)
        return {}
    found: dict[str, tuple[GpuError, ...]] = {}
    for errors in exporters.read_each(pods, lambda exporter: _page(client, exporter)):
        found.update(errors)
    return found


def _page(client: KubeClient, exporter: Exporter) -> Errors:
    try:
        text = exporters.read_page(client, exporter)
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
