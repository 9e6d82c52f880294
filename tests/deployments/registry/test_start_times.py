"""How long pods of a version took to start: its page, REST, and a deployment that starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from fleet.models import Cluster, Node, Pod
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
_URL = "/vision/models/detector/1"


def _start(
    world: World, workload: str, number: int, load: int, instance: str = "g5.xlarge"
) -> None:
    """A measured start of 100 s and the load."""
    cluster = Cluster.objects.get(pk=world.cluster_id)
    now = clock.now() + timedelta(seconds=number)
    node, _ = Node.objects.get_or_create(
        cluster=cluster,
        uid=instance,
        defaults={
            "name": instance,
            "instance_type": instance,
            "first_seen_at": now,
            "last_seen_at": now,
        },
    )
    Pod.objects.create(
        cluster=cluster,
        workload=cluster.workloads.get(name=workload),
        node=node,
        namespace="vision",
        name=f"{workload}-{number}",
        uid=f"{workload}-{number}",
        created_at=now,
        ready_at=now,
        start_seconds={"node": 0, "image": 30, "download": 60, "compare": 10, "load": load},
    )


def _api(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def measured(world: World) -> World:
    world.serving()
    for number, load in enumerate((20, 30, 90)):
        _start(world, "detector-r1", number, load)
    return world


def test_the_page_of_a_version_shows_where_its_start_time_goes(
    measured: World, signed_in: SignIn
) -> None:
    (row,) = page(signed_in(measured.viewer).get(_URL)).part("start-times").rows

    assert row == {
        "Engine": "KServe · Triton",
        "Instance type": "g5.xlarge",
        "Median": "2.2 min3 starts",
        "Node": "0 s",
        "Image": "30 s",
        "Download": "1 min",
        "Digests": "10 s",
        "Load": "30 s",
    }


def test_other_instance_types_are_other_rows(measured: World, signed_in: SignIn) -> None:
    _start(measured, "detector-r1", 3, 5, "p4d.24xlarge")

    rows = page(signed_in(measured.viewer).get(_URL)).part("start-times").rows

    assert [(row["Instance type"], row["Median"]) for row in rows] == [
        ("p4d.24xlarge", "1.8 min1 start"),
        ("g5.xlarge", "2.2 min3 starts"),
    ]


def test_only_the_last_twenty_count(measured: World, signed_in: SignIn) -> None:
    for number in range(3, 23):
        _start(measured, "detector-r1", number, 0)

    (row,) = page(signed_in(measured.viewer).get(_URL)).part("start-times").rows

    assert (row["Median"], row["Load"]) == ("1.7 min20 starts", "0 s")


def test_rest_gives_seconds(measured: World) -> None:
    url = f"/api/v1/versions/{measured.version1.pk}/starts"

    assert _api(measured.viewer).get(url).json() == [
        {
            "engine": "kserve-triton",
            "model_cache": "none",
            "instance_type": "g5.xlarge",
            "starts": 3,
            "seconds": 130,
            "steps": {"node": 0, "image": 30, "download": 60, "compare": 10, "load": 30},
        }
    ]
    assert _api(measured.stranger).get(url).status_code == 404


def test_a_version_that_never_started_shows_no_times(world: World, signed_in: SignIn) -> None:
    assert "Start times" not in page(signed_in(world.viewer).get(_URL)).text


def test_a_deployment_that_starts_says_how_long_that_usually_takes(
    measured: World, signed_in: SignIn
) -> None:
    client = signed_in(measured.viewer)
    usual = "Typical start: 2.2 min on g5.xlarge (3 starts)"
    assert usual not in page(client.get("/vision/deployments/detector")).text
    measured.cluster.make_ready("detector-r1", is_ready=False)
    deployment = measured.version1.revisions.get().deployment
    measured.reconcile_now(deployment)

    assert usual in page(client.get("/vision/deployments/detector")).text
