"""The first requests of a pod are slow: its times are not judged while it warms up, its errors are."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout, RolloutEvent
from deployments.plans.domain import warm_up
from deployments.rollouts.services import reconcile
from deployments.states import RolloutPhase
from fleet.models import Pod
from fleet.telemetry.selectors import warm_ups
from fleet.telemetry.selectors.current import WorkloadKey
from tests.deployments.canaries import STEPS, send, view
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World

LATENCY: list[dict[str, Any]] = [{"metric": "latency_mean", "max_ratio": 1.25}]


def interval(world: World, deployment: Deployment, *, latency_us: int, failure: int = 0) -> None:
    """Five seconds in which stable is as ever, then a pass of the rollout only."""
    world.clock.move(5)
    send(world, "detector-r1", 900, latency_us=20_000)
    send(world, "detector-r2", 100 - failure, failure=failure, latency_us=latency_us)
    reconcile.advance(rollout_id=deployment.rollouts.get().pk)


def started_at(rollout: Rollout) -> datetime:
    assert rollout.step_started_at is not None
    return rollout.step_started_at


def phase_of(rollout: Rollout) -> str:
    rollout.refresh_from_db()
    return rollout.phase


def test_a_candidate_that_is_slow_while_it_warms_up_is_promoted(world: World) -> None:
    deployment, rollout = begin(world, guards=LATENCY, warmup_seconds=120)
    for _ in range(24):
        interval(world, deployment, latency_us=40_000)
    warming = view(world, rollout)
    warm_at = started_at(rollout) + timedelta(seconds=125)

    assert phase_of(rollout) == RolloutPhase.RUNNING
    assert warming.warming == f"warming up, not judged until {warm_at:%H:%M:%S} UTC"
    assert warming.promotable_reason == f"not enough data: mean latency ({warming.warming})"
    assert warming.guards[1].message == warming.warming
    assert warming.candidate_requests == 2400, "they count as requests all the same"
    for _ in range(12):
        interval(world, deployment, latency_us=20_000)

    warm = view(world, rollout)

    assert (phase_of(rollout), warm.warming) == (RolloutPhase.RUNNING, "")
    assert warm.is_promotable, warm.promotable_reason
    assert warm.guards[1].candidate == "20.0 ms", "of what was judged"


def test_one_that_is_grossly_slow_is_aborted_while_it_warms_up(world: World) -> None:
    deployment, rollout = begin(world, guards=LATENCY, warmup_seconds=3600)
    for _ in range(60):
        if phase_of(rollout) != RolloutPhase.RUNNING:
            break
        interval(world, deployment, latency_us=60_000)

    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message.startswith("aborted: mean latency: worse than allowed")
    assert aborted.at - started_at(rollout) < timedelta(seconds=120)


def test_one_that_stays_slow_is_aborted_once_it_should_be_warm(world: World) -> None:
    deployment, rollout = begin(world, guards=LATENCY, warmup_seconds=60, is_calm=True)
    for _ in range(60):
        if phase_of(rollout) != RolloutPhase.RUNNING:
            break
        interval(world, deployment, latency_us=40_000)

    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message.startswith("aborted: mean latency: worse than allowed")
    assert aborted.at - started_at(rollout) > timedelta(seconds=65)


def test_errors_of_a_pod_that_warms_up_abort(world: World) -> None:
    deployment, rollout = begin(world, warmup_seconds=3600)
    for _ in range(12):
        if phase_of(rollout) != RolloutPhase.RUNNING:
            break
        interval(world, deployment, latency_us=60_000, failure=50)

    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message.startswith("aborted: error ratio: worse than allowed")


def test_a_pod_that_is_added_later_warms_up_from_its_own_first_request(world: World) -> None:
    deployment, rollout = begin(world, warmup_seconds=60)
    workload = WorkloadKey(world.cluster_id, "vision", "detector-r2")
    interval(world, deployment, latency_us=20_000)
    first = Pod.objects.get(uid="detector-r2")

    def begun(known: dict[int, datetime]) -> dict[int, datetime]:
        return warm_ups.first_requests(workload, since=started_at(rollout), known=known)

    assert begun({}) == {first.pk: world.clock.at}
    assert begun({first.pk: world.clock.at}) == {}

    Pod.objects.filter(pk=first.pk).update(uid="older", name="older")
    world.clock.move(300)
    send(world, "detector-r2", 0)
    added = Pod.objects.get(uid="detector-r2")
    assert begun({first.pk: world.clock.at}) == {}, "ready, but without a request"
    world.clock.move(5)
    send(world, "detector-r2", 10)

    assert begun({first.pk: world.clock.at}) == {added.pk: world.clock.at}


@pytest.mark.parametrize(
    ("load", "seconds"), [(None, 120), (0, 120), (7, 30), (95, 95), (4000, 600)]
)
def test_the_default_follows_how_long_the_model_takes_to_load(
    load: int | None, seconds: int
) -> None:
    assert warm_up.from_start(load) == seconds


def test_a_request_without_one_gets_the_default_and_keeps_it(world: World) -> None:
    deployment = world.serving()

    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )

    assert change.plan["warmup_seconds"] == 120
