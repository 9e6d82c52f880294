"""Count requests where they pass: at the proxies of a cluster's Gateway, or else in its Prometheus."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from fleet.clusters.domain.prometheus import PrometheusError, PrometheusSample
from fleet.clusters.services import gateway_probe, prometheus
from fleet.clusters.services.gateway_probe import Proxy
from fleet.kube.domain.errors import ClusterError, NotAllowed
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from fleet.telemetry.domain import gateway_metrics
from fleet.telemetry.domain.gateway_metrics import NotMetrics, Passed

logger = logging.getLogger(__name__)

_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class GatewayReading:
    """A reading of a gateway's metrics. `counts` by Service and proxy. `problem` says why there are none; with
    `is_countable` False because nothing counts there, else because it could not be read this time.
    """

    counts: Mapping[str, Mapping[str, Passed]] = field(default_factory=dict)
    problem: str = ""
    is_countable: bool = True


def read(*, cluster_id: int, namespace: str, services: Collection[str]) -> GatewayReading:
    """Read the metrics of the gateway. Makes network calls: run it outside transactions."""
    cluster = Cluster.objects.get(pk=cluster_id)
    reading = _read_proxies(cluster, namespace, services)
    if reading.counts or not cluster.prometheus_url:
        return reading
    return _read_prometheus(cluster, namespace, services)


def _read_proxies(cluster: Cluster, namespace: str, services: Collection[str]) -> GatewayReading:
    gateway = (cluster.gateway_namespace, cluster.gateway_name)
    try:
        client = clients.connect(clients.build_connection(cluster))
        proxies = gateway_probe.list_proxies(client, gateway)
    except NotAllowed:
        return _not_here("the portal may not list the pods of the gateway")
    except ClusterError as error:
        return GatewayReading(problem=error.message)
    if not proxies:
        return _not_here(f"no proxy of Gateway {'/'.join(gateway)} states a port for its metrics")
    with ThreadPoolExecutor(min(_THREADS, len(proxies))) as pool:
        pages = list(pool.map(lambda proxy: _read_page(client, proxy), proxies))
    problems = [page for page in pages if isinstance(page, GatewayReading)]
    if len(problems) == len(pages):
        return problems[0]
    counts: dict[str, dict[str, Passed]] = {}
    for proxy, page in zip(proxies, pages, strict=True):
        if not isinstance(page, GatewayReading):
            counted = gateway_metrics.count_requests(
                page, namespace=namespace, services=services, proxy=proxy.pod
            )
            for service, by_proxy in counted.items():
                counts.setdefault(service, {}).update(by_proxy)
    return _counted(counts)


def _read_page(client: KubeClient, proxy: Proxy) -> list[PrometheusSample] | GatewayReading:
    where = f"{proxy.namespace}/{proxy.pod}"
    try:
        return gateway_metrics.parse_page(proxy.read(client, only=gateway_metrics.PAGE_FILTER))
    except NotAllowed:
        return _not_here(f"the portal may not read pods/proxy in {proxy.namespace}")
    except ClusterError as error:
        logger.info("no metrics from gateway proxy %s: %s", where, error)
        return GatewayReading(problem=f"the gateway's proxy {where} was not read: {error.message}")
    except NotMetrics:
        return _not_here(f"the gateway's proxy {where} offers no metrics")


def _read_prometheus(cluster: Cluster, namespace: str, services: Collection[str]) -> GatewayReading:
    query = gateway_metrics.build_query(namespace=namespace, services=services)
    [result] = prometheus.query(cluster_id=cluster.pk, queries=[query])
    if isinstance(result, PrometheusError):
        return GatewayReading(problem=result.message)
    if result.warnings:
        warning = result.warnings[0]
        return GatewayReading(problem=f"Prometheus warns that data may be missing: {warning}")
    return _counted(
        gateway_metrics.count_requests(result.samples, namespace=namespace, services=services)
    )


def _counted(counts: Mapping[str, Mapping[str, Passed]]) -> GatewayReading:
    if not counts:
        return _not_here("the gateway has no counters of these revisions")
    return GatewayReading(counts=counts)


def _not_here(why: str) -> GatewayReading:
    return GatewayReading(problem=why, is_countable=False)
