"""The Prometheus that a cluster is registered with: is it there, and what does it answer."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.domain.prometheus import Answer, Endpoint, PrometheusError, signing_for
from fleet.clusters.gateways import prometheus
from fleet.models import Cluster

NOT_REGISTERED = "No Prometheus is registered for cluster"


def query(*, cluster_id: int, queries: Sequence[str]) -> list[Answer | PrometheusError]:
    """One answer, or what is the matter, for each query. A network call: outside any transaction."""
    cluster = Cluster.objects.get(pk=cluster_id)
    endpoint = _endpoint(cluster)
    if not endpoint.url:
        return [PrometheusError(f"{NOT_REGISTERED} {cluster.name}") for _ in queries]
    return prometheus.query(endpoint, queries)


def probe(cluster: Cluster) -> Feature:
    """Whether it answers a query. One that does not is not known rather than missing."""
    endpoint = _endpoint(cluster)
    if not endpoint.url:
        return Feature(is_there=False, why=f"{NOT_REGISTERED} {cluster.name}")
    [found] = prometheus.query(endpoint, ["vector(1)"])
    if isinstance(found, PrometheusError):
        return Feature(None, why=f"{found.message}.")
    return Feature(is_there=True, version=prometheus.version(endpoint))


def _endpoint(cluster: Cluster) -> Endpoint:
    url = cluster.prometheus_url
    signing = None
    if cluster.has_prometheus_sigv4:
        signing = signing_for(url, region=cluster.region, role_arn=cluster.role_arn)
    return Endpoint(url, cluster.prometheus_token_path, cluster.prometheus_ca_pem, signing)
