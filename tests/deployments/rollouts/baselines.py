"""Canaries of the tests that are compared with a baseline."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout
from tests.deployments.guarded_rollouts import calm_hour
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE, OF_SERVERS

STEPS = [
    {"weight": 5, "soak_seconds": 0, "min_requests": 20},
    {"weight": 50, "soak_seconds": 0, "min_requests": 20},
    {"weight": 100, "soak_seconds": 0, "min_requests": 0},
]
THREE = {"min_replicas": 3, "max_replicas": 3}
WITH = {"has_baseline": True, "guards": OF_SERVERS}


def request(
    world: World,
    *,
    steps: Any = STEPS,
    plan: Any = WITH,
    is_calm: bool = False,
    spec: Any = THREE,
) -> ChangeRequest:
    deployment = world.serving(**spec)
    if is_calm:
        calm_hour(world)
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan={**AT_ONCE, **plan},
    )


def go(world: World) -> Rollout:
    world.reconcile_now(Deployment.objects.get())
    return Rollout.objects.get()
