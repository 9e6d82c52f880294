"""The page of a cluster and REST say where the metrics of its model servers come from, and why."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from fleet.models import Cluster, ScrapeReading
from tests.fleet.objects import START
from tests.fleet.one_node import admin, member, vision
from tests.page import page

__all__ = ["admin", "member", "vision"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def reading(cluster: Cluster) -> ScrapeReading:
    Cluster.objects.update(prometheus_url="http://prometheus.example")
    return ScrapeReading.objects.create(
        cluster=cluster, next_at=START, read_at=START + timedelta(hours=4, minutes=3), pods=9800
    )


def shown(client: Client, cluster: Cluster) -> str:
    return page(client.get(f"/admin/clusters/{cluster.pk}")).term("Serving metrics")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "From Prometheus (9800 pods, at 14:03 UTC)"),
        (
            {"direct_pods": [1]},
            "From Prometheus (9800 pods, at 14:03 UTC) 1 pod without series there is read directly.",
        ),
        (
            {"problem": "it is down", "direct_pods": [1, 2]},
            "From the pods Not from Prometheus: it is down.",
        ),
        (
            {"problem": "it is down", "unread": 9800},
            "Not read Not from Prometheus: it is down. 9800 pods are not read: at most 1000 are read directly.",
        ),
        (
            {"pods": 0, "direct_pods": [1]},
            "From the pods Not from Prometheus: it has no series of serving pods"
            " with the labels namespace and pod.",
        ),
    ],
)
def test_the_page_says_where_they_come_from(
    admin: Client, cluster: Cluster, reading: ScrapeReading, changed: dict[str, object], text: str
) -> None:
    ScrapeReading.objects.update(**changed)
    assert " ".join(shown(admin, cluster).split()) == text


def test_a_cluster_without_prometheus_says_so(admin: Client, cluster: Cluster) -> None:
    assert "Not from Prometheus: none is registered for the cluster." in shown(admin, cluster)
    Cluster.objects.update(prometheus_url="http://prometheus.example")
    assert "Not from Prometheus: it was not queried yet." in shown(admin, cluster)


def test_rest_says_the_same(member: Client, cluster: Cluster, reading: ScrapeReading) -> None:
    ScrapeReading.objects.update(direct_pods=[4, 5], unread=3)
    body = member.get(f"/api/v1/clusters/{cluster.pk}").json()
    assert body["serving_metrics"] == {
        "origin": "prometheus",
        "pods": 9800,
        "direct_pods": 2,
        "unread_pods": 3,
        "read_at": "2026-11-20T14:03:00Z",
        "problem": "",
    }
