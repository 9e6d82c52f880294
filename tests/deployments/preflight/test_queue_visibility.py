"""Queues of a cluster are named after teams: a reader sees those of their own."""

from __future__ import annotations

from rest_framework.test import APIClient

from portal.accounts.models import User
from tests.deployments import queues
from tests.deployments.world import World


def namespaces(world: World, reader: User) -> list[str]:
    client = APIClient()
    client.force_authenticate(reader)
    body = client.get(f"/api/v1/clusters/{world.cluster_id}").json()
    assert client.get("/api/v1/clusters").json()[0] == body
    return [queue["namespace"] for queue in body["capabilities"]["kueue"]["queues"]]


def test_rest_shows_queues_of_the_readers_teams(world: World) -> None:
    queues.install(world)

    assert namespaces(world, world.member) == ["vision"]
    assert namespaces(world, world.stranger) == ["nlp"]
    assert namespaces(world, world.admin) == ["vision", "nlp"]
