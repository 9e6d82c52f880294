"""A canary under way, its readings, and what the page would show of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.selectors import rollouts as rollout_selectors
from fleet.models import MetricSample, Pod, Workload
from fleet.telemetry.domain.counters import CounterSums
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

STEPS = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]


def start(
    world: World, steps: list[dict[str, Any]] = STEPS, environment: str = "production"
) -> tuple[Deployment, Rollout]:
    """A serving deployment whose canary gets its first step's weight."""
    return world.play(f"canary {environment} {steps}", lambda: _start(world, steps, environment))


def _start(
    world: World, steps: list[dict[str, Any]], environment: str
) -> tuple[Deployment, Rollout]:
    deployment = world.serving(environment=environment)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan=AT_ONCE,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def send(world: World, name: str, success: int, failure: int = 0, latency_us: int = 4000) -> None:
    """Readings of one pod: nothing since the last, then so many requests."""
    workload = Workload.objects.get(name=name)
    at = world.clock.at
    pod, _ = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid=name,
        defaults={
            "workload": workload,
            "namespace": workload.namespace,
            "name": name,
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
        },
    )
    last = MetricSample.objects.filter(pod=pod).order_by("-at").first()
    old = CounterSums(
        request_success=last.request_success if last else 0,
        request_failure=last.request_failure if last else 0,
        request_duration_us=last.request_duration_us if last else 0,
    )
    new = old + CounterSums(
        request_success=success,
        request_failure=failure,
        request_duration_us=success * latency_us,
    )
    MetricSample.objects.create(pod=pod, at=at - timedelta(seconds=1), **asdict(old))
    MetricSample.objects.create(pod=pod, at=at, **asdict(new))


def serve(world: World, deployment: Deployment, weight: int) -> None:
    """A thousand requests in the next five seconds, `weight` percent of them to the candidate."""
    world.clock.move(5)
    send(world, "detector-r1", 10 * (100 - weight))
    send(world, "detector-r2", 10 * weight)
    world.reconcile_now(deployment)


def view(world: World, rollout: Rollout) -> Any:
    fresh = rollout_selectors.get_visible(actor=world.lead, rollout_id=rollout.pk)
    return rollout_selectors.view_of(actor=world.lead, rollout=fresh)


def soak(world: World, deployment: Deployment, seconds: float = 61) -> None:
    world.clock.move(seconds)
    world.reconcile_now(deployment)
