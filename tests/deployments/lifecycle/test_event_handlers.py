"""A cluster's events are hints to reconcile soon, and nothing more."""

from __future__ import annotations

from datetime import timedelta

from deployments.lifecycle.services import wakeups
from deployments.models import Deployment
from portal.core import clock, leases
from tests.deployments.world import World


def test_only_live_deployments_of_that_cluster_are_requeued(world: World) -> None:
    deployment = world.serving()
    later = clock.now() + timedelta(days=1)
    Deployment.objects.update(next_check_at=later)
    mine = str(deployment.pk)

    wakeups.on_change(world.cluster_id + 1, {mine})
    wakeups.on_change(world.cluster_id, {"", "x", "9" * 19, str(deployment.pk + 1)})
    assert leases.due(Deployment) == []

    wakeups.on_change(world.cluster_id, {mine, "x"})
    assert leases.due(Deployment) == [deployment.pk]


def test_a_deleted_network_policy_is_back_after_the_next_pass(world: World) -> None:
    deployment = world.serving()
    world.reconcile_now(deployment)
    key = ("NetworkPolicy", "vision", "detector-r1")
    approved = world.cluster.objects.pop(key)
    Deployment.objects.update(next_check_at=clock.now() + timedelta(days=1))

    wakeups.on_deletion(world.cluster_id + 1, {str(deployment.pk)})
    world.work()
    assert key not in world.cluster.objects

    wakeups.on_deletion(world.cluster_id, {str(deployment.pk)})
    world.work()
    assert world.cluster.objects[key]["spec"] == approved["spec"]
