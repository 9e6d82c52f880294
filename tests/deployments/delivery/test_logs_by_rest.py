"""The log of a pod by REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework.test import APIClient

from fleet.kube.domain.errors import Unreachable
from fleet.models import Pod, Workload
from portal.accounts.models import User
from tests.deployments.world import World


def read(user: User, deployment_id: int, **query: Any) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.get(f"/api/v1/deployments/{deployment_id}/logs", query)


def with_pod(world: World) -> int:
    deployment = world.serving()
    Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=Workload.objects.get(name="detector-r1"),
        namespace="vision",
        name="detector-r1-0",
        uid="u1",
        phase="Running",
        is_ready=True,
        created_at=world.clock.at - timedelta(minutes=2),
    )
    world.cluster.logs["detector-r1-0"] = "model loaded\nserving\n"
    return int(deployment.pk)


def test_the_newest_pod_is_read_unless_another_is_named(world: World) -> None:
    deployment_id = with_pod(world)

    body = read(world.viewer, deployment_id).json()

    assert body == {
        "pod": "detector-r1-0",
        "pods": [{"name": "detector-r1-0", "phase": "Running", "is_ready": True}],
        "text": "model loaded\nserving\n",
        "problem": "",
    }
    assert read(world.viewer, deployment_id, pod="detector-r1-0").json() == body
    assert read(world.viewer, deployment_id, pod="of-another-team").status_code == 404


def test_a_deployment_without_pods_has_no_log(world: World) -> None:
    body = read(world.viewer, world.serving().pk).json()

    assert body == {"pod": "", "pods": [], "text": "", "problem": ""}


def test_a_cluster_that_does_not_answer_is_the_problem(world: World) -> None:
    deployment_id = with_pod(world)
    world.cluster.fail_with = Unreachable("connection refused")

    body = read(world.viewer, deployment_id).json()

    assert body["text"] == ""
    assert body["problem"] == "The cluster did not return the log: connection refused"


def test_strangers_and_impossible_numbers_are_refused(world: World) -> None:
    deployment_id = with_pod(world)

    assert read(world.stranger, deployment_id).status_code == 404
    assert read(world.viewer, deployment_id, lines=0).status_code == 422
    assert read(world.viewer, deployment_id, lines=2_001).status_code == 422
