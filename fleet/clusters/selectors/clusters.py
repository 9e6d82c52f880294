"""Registered clusters, without their credentials."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef

from fleet.clusters.domain import ca_bundle
from fleet.clusters.domain.ca_bundle import Certificate
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.serving_metrics import ServingMetrics
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.kube.domain.ownership import OtherInstallation
from fleet.models import Cluster, Node, ScrapeReading
from portal.core import leases
from portal.core.errors import NotFound
from portal.core.leases import Backlog

_NO_SERIES: Final = "it has no series of serving pods with the labels namespace and pod"
_WATCH_LATE: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A registered cluster. `is_reachable` None means never contacted."""

    id: int
    name: str
    kind: str
    region: str
    gateway_url: str
    gateway_namespace: str
    gateway_name: str
    is_reachable: bool | None
    last_error: str
    last_seen_at: datetime | None
    watch_seen_at: datetime | None
    capabilities: Capabilities
    is_simulated: bool
    has_prometheus: bool = False
    serving: ServingPolicy = field(default_factory=ServingPolicy)
    # Trusted for its Prometheus instead of the public ones; empty: the public ones.
    prometheus_certificates: tuple[Certificate, ...] = ()
    # When ResourceSlices and ResourceClaims were last listed; None: they are not readable.
    devices_read_at: datetime | None = None
    serving_metrics: ServingMetrics = field(default_factory=ServingMetrics)
    # What the last probe found of other installations of Slipway.
    other_installations: tuple[OtherInstallation, ...] = ()

    def is_watched(self, now: datetime) -> bool:
        """Whether the watcher reported recently, if only that nothing changed."""
        return self.watch_seen_at is not None and now - self.watch_seen_at <= _WATCH_LATE


def list_reachability() -> list[tuple[str, bool | None]]:
    """List the clusters' names and whether they could be reached (None: never contacted), for the frame of every
    page.
    """
    return list(Cluster.objects.order_by("name").values_list("name", "is_reachable"))


def list_clusters() -> list[ClusterInfo]:
    return [_info(cluster) for cluster in _annotated()]


def observation_backlog() -> Backlog:
    """Return the backlog of clusters whose observation is due."""
    return leases.backlog(Cluster.objects.all())


def get_cluster(cluster_id: int) -> ClusterInfo:
    for cluster in _annotated().filter(pk=cluster_id).order_by():
        return _info(cluster)
    raise NotFound(f"Cluster {cluster_id} does not exist.")


def _annotated() -> Any:
    simulated = Node.objects.filter(cluster=OuterRef("pk"), gone_at=None, is_simulated=True)
    return (
        Cluster.objects.annotate(is_simulated=Exists(simulated))
        .select_related("scrape_reading")
        .order_by("name")
    )


@functools.lru_cache(maxsize=256)
def _certificates(pem: str) -> tuple[Certificate, ...]:
    return ca_bundle.parse(pem) if pem else ()


def _info(cluster: Any) -> ClusterInfo:
    return ClusterInfo(
        id=cluster.pk,
        name=cluster.name,
        kind=cluster.kind,
        region=cluster.region,
        gateway_url=cluster.gateway_url,
        gateway_namespace=cluster.gateway_namespace,
        gateway_name=cluster.gateway_name,
        is_reachable=cluster.is_reachable,
        last_error=cluster.last_error,
        last_seen_at=cluster.last_seen_at,
        watch_seen_at=cluster.watch_seen_at,
        capabilities=Capabilities.from_json(cluster.capabilities),
        is_simulated=cluster.is_simulated,
        has_prometheus=bool(cluster.prometheus_url),
        serving=ServingPolicy.from_json(cluster.serving),
        prometheus_certificates=_certificates(cluster.prometheus_ca_pem),
        devices_read_at=cluster.devices_read_at,
        serving_metrics=_serving_metrics(cluster),
        other_installations=tuple(
            OtherInstallation.from_json(item) for item in cluster.other_installations
        ),
    )


def _serving_metrics(cluster: Cluster) -> ServingMetrics:
    if not cluster.prometheus_url:
        return ServingMetrics(problem="none is registered for the cluster")
    try:
        reading = cluster.scrape_reading
    except ScrapeReading.DoesNotExist:
        return ServingMetrics(problem="it was not queried yet")
    return ServingMetrics(
        pods=reading.pods if not reading.problem else 0,
        direct_pods=len(reading.direct_pods),
        unread_pods=reading.unread,
        read_at=reading.read_at,
        problem=reading.problem or ("" if reading.pods else _NO_SERIES),
    )
