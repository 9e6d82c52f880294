"""A rollout with guards at its first step, and intervals of traffic for both of its sides."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import reconcile
from tests.deployments.canaries import STEPS, send
from tests.deployments.world import World


def begin(world: World, *, steps: Any = STEPS, **plan: Any) -> tuple[Deployment, Rollout]:
    """As `start`, with a plan of its own."""
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan=plan,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def interval(world: World, deployment: Deployment, *, latency_us: int = 20_000) -> None:
    """Five seconds of both sides, then a reconcile pass."""
    world.clock.move(5)
    send(world, "detector-r1", 90, latency_us=20_000)
    send(world, "detector-r2", 10, latency_us=latency_us)
    reconcile.advance(rollout_id=deployment.rollouts.get().pk)


def fill(world: World, deployment: Deployment) -> None:
    """Everything that the first of STEPS requires."""
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)


def weights(world: World) -> dict[str, int]:
    return world.cluster.weights("vision", "detector")
