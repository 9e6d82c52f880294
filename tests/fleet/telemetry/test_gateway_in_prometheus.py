"""Requests at the gateway from a real Prometheus, for a gateway whose proxies cannot be read."""

from __future__ import annotations

import pytest

from fleet.models import Cluster
from fleet.telemetry.domain.gateway_metrics import Passed
from fleet.telemetry.services import gateway
from tests.fixtures.prometheus import RealPrometheus

pytestmark = pytest.mark.django_db
SERVICES = ("detector-r1-predictor", "detector-r2-predictor")


def istio(name: str, flags: str, namespace: str = "vision") -> str:
    return (
        f'istio_requests_total{{reporter="source",destination_service_name="{name}",'
        f'destination_service_namespace="{namespace}",response_flags="{flags}",pod="gw-1"}}'
    )


def envoy(name: str, service: str, namespace: str = "vision") -> str:
    cluster = f"outbound|80||{service}.{namespace}.svc.cluster.local"
    return f'envoy_cluster_upstream_{name}{{envoy_cluster_name="{cluster}",pod="gw-1"}}'


def read(cluster: Cluster) -> gateway.GatewayReading:
    return gateway.read(cluster_id=cluster.pk, namespace="vision", services=SERVICES)


def test_istio_is_read_by_flags(kube: object, cluster: Cluster, prometheus: RealPrometheus) -> None:
    Cluster.objects.update(prometheus_url=prometheus.url)
    cluster.refresh_from_db()
    prometheus.show(
        {
            istio("detector-r1-predictor", "-"): 900,
            istio("detector-r2-predictor", "-"): 80,
            istio("detector-r2-predictor", "UT"): 20,
            istio("detector-r2-predictor", "UT", "nlp"): 500,
        }
    )

    assert read(cluster).counts == {
        "detector-r1-predictor": {"gw-1": Passed(900, 0)},
        "detector-r2-predictor": {"gw-1": Passed(100, 20)},
    }


def test_envoy_is_read_by_cluster(
    kube: object, cluster: Cluster, prometheus: RealPrometheus
) -> None:
    Cluster.objects.update(prometheus_url=prometheus.url)
    cluster.refresh_from_db()
    prometheus.show(
        {
            envoy("rq_total", "detector-r2-predictor"): 100,
            envoy("cx_destroy_with_active_rq", "detector-r2-predictor"): 15,
            envoy("rq_total", "detector-r2-predictor", "nlp"): 70,
            envoy("rq_total", "my-detector-r2-predictor"): 70,
        }
    )

    assert read(cluster).counts == {"detector-r2-predictor": {"gw-1": Passed(100, 15)}}


def test_without_series_nothing_is_counted_here(
    kube: object, cluster: Cluster, prometheus: RealPrometheus
) -> None:
    Cluster.objects.update(prometheus_url=prometheus.url)
    cluster.refresh_from_db()
    prometheus.show({"up_here": 1})

    reading = read(cluster)

    assert (reading.is_countable, reading.problem) == (
        False,
        "the gateway has no counters of these revisions",
    )
