"""Clusters: whether they answer, when they were last observed, and requests to their API servers that failed."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fleet.clusters.selectors import clusters
from portal.core import counters


def collect() -> Iterator[Metric]:
    reachable = GaugeMetricFamily(
        "slipway_cluster_reachable", "1: the last observation succeeded.", labels=["cluster"]
    )
    observed = GaugeMetricFamily(
        "slipway_cluster_observed_timestamp_seconds",
        "When nodes and pods were last observed; 0: never.",
        labels=["cluster"],
    )
    for cluster in clusters.list_clusters():
        reachable.add_metric([cluster.name], float(bool(cluster.is_reachable)))
        at = cluster.last_seen_at
        observed.add_metric([cluster.name], at.timestamp() if at else 0.0)
    yield reachable
    yield observed


def collect_errors() -> Iterator[Metric]:
    """Yield the errors of registered clusters only, so that removed ones are not kept forever."""
    failed = CounterMetricFamily(
        "slipway_cluster_errors",
        "Requests of all processes to the API server that it did not answer, refused or throttled.",
        labels=["cluster", "error"],
    )
    names = {cluster.name for cluster in clusters.list_clusters()}
    for (cluster_name, error), count in counters.read(counters.CLUSTER_ERRORS).items():
        if cluster_name in names:
            failed.add_metric([cluster_name, error], count)
    yield failed
