"""GET deployments/{id}/stats: figures of Triton, and null for what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.models import Deployment
from fleet.models import MetricSample, Pod, Workload
from tests.portal.api.conftest import World

pytestmark = pytest.mark.django_db


def fetch(world: World, deployment: Deployment, who: str) -> Any:
    client = APIClient()
    client.force_authenticate(getattr(world, who))
    return client.get(f"/api/v1/deployments/{deployment.pk}/stats")


def read_triton(world: World, *, seconds_ago: int, requests: int, failures: int = 0) -> None:
    """One reading of the pod of detector-r1, each request of 4 ms."""
    at = world.clock.at - timedelta(seconds=seconds_ago)
    workload = Workload.objects.get(name="detector-r1")
    pod, _ = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid="pod-1",
        defaults={
            "namespace": "vision",
            "name": "detector-r1-x",
            "workload": workload,
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
        },
    )
    MetricSample.objects.create(
        pod=pod,
        at=at,
        request_success=requests,
        request_failure=failures,
        inference_count=requests,
        execution_count=requests,
        request_duration_us=4000 * requests,
        queue_duration_us=1000 * requests,
        compute_input_us=500 * requests,
        compute_infer_us=2000 * requests,
        compute_output_us=500 * requests,
        request_p95_us=9000,
        pending_requests=2,
    )


def test_measurements_are_returned_with_their_source(world: World) -> None:
    deployment = world.serving()
    read_triton(world, seconds_ago=70, requests=100)
    read_triton(world, seconds_ago=10, requests=160, failures=20)

    body = fetch(world, deployment, "viewer").json()

    assert body["total"] == body["revisions"][0]["stats"]
    assert {"number": 1, "role": "stable"}.items() <= body["revisions"][0].items()
    total = body["total"]
    assert total["requests_per_second"] == pytest.approx(80 / 60)
    assert total["error_ratio"] == 0.25
    assert total["mean_latency_ms"] == 4.0
    assert total["latency_split"] == {
        "queue_ms": 1.0,
        "input_ms": 0.5,
        "compute_ms": 2.0,
        "output_ms": 0.5,
    }
    assert (total["p95_ms"], total["p95_source"]) == (9.0, "Triton summary, slowest replica")
    assert total["busy_ratio"] == pytest.approx(0.12 / 60)
    assert total["busy_source"] == "Triton busy time"
    assert (total["success"], total["failure"], total["pods"]) == (60, 20, 1)


def test_unread_figures_are_null_and_not_zero(world: World) -> None:
    deployment = world.serving()

    body = fetch(world, deployment, "member").json()

    assert body == {
        "seconds": 300,
        "total": None,
        "revisions": [{"number": 1, "role": "stable", "stats": None}],
    }


@pytest.mark.parametrize(
    ("who", "status"),
    [("viewer", 200), ("member", 200), ("lead", 200), ("admin", 200), ("stranger", 404)],
)
def test_who_may_read_them(world: World, who: str, status: int) -> None:
    assert fetch(world, world.serving(), who).status_code == status
