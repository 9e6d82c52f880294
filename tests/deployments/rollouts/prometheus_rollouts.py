"""A canary whose guards are read from a Prometheus, for tests."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import prometheus_readings
from fleet.models import Cluster
from tests.deployments.canaries import send, view
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

STEPS = [{"weight": 10, "soak_seconds": 0, "min_requests": 100}]


def begin(world: World, url: str, *guards: dict[str, Any]) -> tuple[Deployment, Rollout]:
    return world.play(f"prometheus {url} {guards}", lambda: _begin(world, url, guards))


def _begin(
    world: World, url: str, guards: tuple[dict[str, Any], ...]
) -> tuple[Deployment, Rollout]:
    Cluster.objects.filter(pk=world.cluster_id).update(prometheus_url=url)
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={**AT_ONCE, "guards": list(guards)},
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def read(world: World, deployment: Deployment, times: int = 1) -> None:
    """Enough requests of both sides each time, so that only Prometheus decides."""
    for _ in range(times):
        world.clock.move(10)
        send(world, "detector-r1", 900)
        send(world, "detector-r2", 100)
        assert prometheus_readings.sweep() == 1
        world.reconcile_now(deployment)


def line(world: World, rollout: Rollout, name: str) -> Any:
    return next(guard for guard in view(world, rollout).guards if guard.guard == name)
