"""Read how busy the Neuron devices of each node are, from the neuron-monitor that runs on it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from django.db.models import QuerySet

from fleet.gpus.domain import shares
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Node
from fleet.telemetry.domain import neuron_metrics
from fleet.telemetry.domain.neuron_metrics import NeuronUse, NotNeuron
from fleet.telemetry.services import exporters
from fleet.telemetry.services.exporters import Exporter
from portal.core import clock

logger = logging.getLogger(__name__)

# Of AWS's own DaemonSet, and of the CloudWatch agent's.
_LABELS: Final = (
    {"app": "neuron-monitor"},
    {"name": "neuron-monitor"},
    {"app.kubernetes.io/name": "neuron-monitor"},
)
_PORT: Final = 8000


def read_all() -> int:
    """Return the number of nodes that were read. What cannot be read keeps its last reading, with its time."""
    return sum(map(_read, Cluster.objects.exclude(is_reachable=False)))


def _read(cluster: Cluster) -> int:
    nodes = {
        node.name: node
        for node in _nodes(cluster)
        if shares.read_gpus(node.labels, node.allocatable).neuron_cores
    }
    if not nodes:
        return 0
    try:
        client = clients.connect(clients.build_connection(cluster))
        found = exporters.list_exporters(client, _LABELS, port=_PORT)
    except ClusterError as error:
        logger.info("Neuron devices of %s: %s", cluster.name, error.message)
        return 0
    own = [exporter for exporter in found if exporter.node in nodes]
    pages = exporters.read_each(own, lambda exporter: _page(client, exporter))
    return _record(nodes, {name: use for name, use in pages if use is not None})


def _page(client: KubeClient, exporter: Exporter) -> tuple[str, NeuronUse | None]:
    try:
        text = exporters.read_page(client, exporter)
        return exporter.node, neuron_metrics.parse_page(text)
    except (ClusterError, NotNeuron) as error:
        logger.info("no Neuron metrics from %s/%s: %s", exporter.namespace, exporter.pod, error)
        return exporter.node, None


def _nodes(cluster: Cluster) -> QuerySet[Node]:
    live = Node.objects.filter(cluster=cluster, gone_at=None, gpu_count__gt=0)
    return live.only("pk", "name", "labels", "allocatable", "gpu_count")


def _record(nodes: Mapping[str, Node], found: Mapping[str, NeuronUse]) -> int:
    at = clock.now()
    changed = []
    for name, use in found.items():
        node = nodes[name]
        cores_each = shares.read_gpus(node.labels, node.allocatable).neuron_cores
        node.neuron_utilisation = use.utilisation(node.gpu_count * cores_each)
        node.neuron_memory_mib = use.memory_mib
        node.neuron_read_at = at
        changed.append(node)
    fields = ["neuron_utilisation", "neuron_memory_mib", "neuron_read_at"]
    Node.objects.bulk_update(changed, fields, batch_size=500)
    return len(changed)
