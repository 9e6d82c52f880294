"""Query the Prometheus that is registered for a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.domain.prometheus import Endpoint, PrometheusError, QueryResult, signing_for
from fleet.clusters.domain.prometheus_series import SeriesResult
from fleet.clusters.gateways import prometheus
from fleet.models import Cluster

NOT_REGISTERED = "No Prometheus is registered for cluster"
_CLUSTERS: Final = 8


def query(*, cluster_id: int, queries: Sequence[str]) -> list[QueryResult | PrometheusError]:
    """Return a result or an error for each query. Makes a network call: run it outside transactions."""
    cluster = Cluster.objects.get(pk=cluster_id)
    endpoint = _endpoint(cluster)
    if not endpoint.url:
        return [PrometheusError(f"{NOT_REGISTERED} {cluster.name}") for _ in queries]
    return prometheus.query(endpoint, queries)


def query_series(
    queries: Mapping[Cluster, Sequence[str]],
) -> dict[Cluster, list[SeriesResult] | PrometheusError]:
    """Run range selectors on clusters with a Prometheus, side by side: one that hangs delays no other. Makes
    network calls: run it outside transactions.
    """
    if not queries:
        return {}
    endpoints = [_endpoint(cluster) for cluster in queries]
    with ThreadPoolExecutor(min(_CLUSTERS, len(endpoints))) as pool:
        results = pool.map(_series, endpoints, queries.values())
        return dict(zip(queries, results, strict=True))


def _series(endpoint: Endpoint, queries: Sequence[str]) -> list[SeriesResult] | PrometheusError:
    try:
        return prometheus.query_series(endpoint, queries)
    except PrometheusError as error:
        return error


def probe(cluster: Cluster) -> Feature:
    """Whether it answers a query. A failing one counts as not known, not as missing."""
    endpoint = _endpoint(cluster)
    if not endpoint.url:
        return Feature(is_there=False, why=f"{NOT_REGISTERED} {cluster.name}")
    [result] = prometheus.query(endpoint, ["vector(1)"])
    if isinstance(result, PrometheusError):
        return Feature(None, why=f"{result.message}.")
    return Feature(is_there=True, version=prometheus.version(endpoint))


def probe_metric(cluster: Cluster, metric: str) -> Feature:
    """Whether it has a series of the metric now."""
    endpoint = _endpoint(cluster)
    if not endpoint.url:
        return Feature(is_there=False, why=f"{NOT_REGISTERED} {cluster.name}")
    [result] = prometheus.query(endpoint, [f"count({metric})"])
    if isinstance(result, PrometheusError):
        return Feature(None, why=f"{result.message}.")
    is_there = bool(result.samples)
    return Feature(is_there, why="" if is_there else f"Prometheus has no {metric}")


def _endpoint(cluster: Cluster) -> Endpoint:
    url = cluster.prometheus_url
    signing = None
    if cluster.has_prometheus_sigv4:
        signing = signing_for(url, region=cluster.region, role_arn=cluster.role_arn)
    return Endpoint(url, cluster.prometheus_token_path, cluster.prometheus_ca_pem, signing)
