"""A rollout with guards at its first step, and intervals of traffic for both of its sides."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import reconcile
from fleet.models import MetricSample, Pod, Workload
from tests.deployments.canaries import STEPS, send
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE


def begin(
    world: World, *, steps: Any = STEPS, is_calm: bool = False, **plan: Any
) -> tuple[Deployment, Rollout]:
    """As `start`, with a plan of its own; `is_calm`: after an hour of steady traffic to stable."""
    return world.play(
        f"guarded {is_calm} {plan} {steps}",
        lambda: _begin(world, steps, is_calm=is_calm, plan=plan),
    )


def _begin(
    world: World, steps: Any, *, is_calm: bool, plan: dict[str, Any]
) -> tuple[Deployment, Rollout]:
    deployment = world.serving()
    if is_calm:
        calm_hour(world)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan={**AT_ONCE, **plan},
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def calm_hour(world: World) -> None:
    """Readings of stable's pod each 5 s, whose times vary without memory."""
    dice, at = random.Random(1), world.clock.at - timedelta(hours=1)
    pod = Pod.objects.create(
        cluster_id=world.cluster_id,
        uid="detector-r1",
        workload=Workload.objects.get(name="detector-r1"),
        namespace="vision",
        name="detector-r1",
        created_at=at,
        ready_at=at - timedelta(hours=1),
    )
    spent, samples = 0, []
    for reading in range(720):
        spent += 90 * dice.randint(3_800, 4_200)
        samples.append(
            MetricSample(
                pod=pod,
                at=at + timedelta(seconds=5 * reading),
                request_success=90 * (reading + 1),
                request_duration_us=spent,
            )
        )
    MetricSample.objects.bulk_create(samples)


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
