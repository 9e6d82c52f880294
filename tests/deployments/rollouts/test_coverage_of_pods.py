"""Evidence is current only when every ready pod was read: a newest reading says nothing of the others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from fleet.models import MetricSample, Pod, Workload
from fleet.telemetry.selectors import coverage
from fleet.telemetry.selectors.coverage import Coverage
from portal.core.errors import Conflict
from tests.deployments.canaries import send, start, view
from tests.deployments.world import World


def add_pod(world: World, name: str, *, ready_ago: float = 600, **changed: object) -> Pod:
    """A ready pod that was never read."""
    at = world.clock.at
    return Pod.objects.create(
        cluster_id=world.cluster_id,
        uid=f"{name}-{Pod.objects.count()}",
        workload=Workload.objects.get(name=name),
        namespace="vision",
        name=f"{name}-{Pod.objects.count()}",
        created_at=at,
        ready_at=at - timedelta(seconds=ready_ago),
        **{"is_ready": True, "phase": "Running", **changed},
    )


def covered(world: World, name: str) -> Coverage:
    return coverage.measure_coverage(
        cluster_id=world.cluster_id, namespace="vision", name=name, within=timedelta(seconds=30)
    )


def fill(world: World, deployment: object) -> None:
    """Enough of the requests that the first step needs, read of one pod of each side."""
    world.clock.move(61)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    Pod.objects.filter(name__in=["detector-r1", "detector-r2"]).update(is_ready=True)
    world.reconcile_now(deployment)  # type: ignore[arg-type]


def test_a_pod_of_stable_that_is_not_read_takes_back_every_verdict(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    assert view(world, rollout).is_promotable
    evidence_hash = view(world, rollout).evidence_hash
    unread = add_pod(world, "detector-r1")

    world.reconcile_now(deployment)

    shown = view(world, rollout)
    why = "1 of 2 pods of the stable revision were read in the last 30 s"
    assert {guard.message for guard in shown.guards[:3]} == {why}
    assert {guard.verdict for guard in shown.guards[:3]} == {"not enough data"}
    assert (shown.rollout.phase, shown.promotable_reason) == (RolloutPhase.RUNNING, why)
    with pytest.raises(Conflict):
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=evidence_hash)

    MetricSample.objects.create(pod=unread, at=world.clock.at)
    world.reconcile_now(deployment)
    assert view(world, rollout).is_promotable


def test_a_split_that_only_seems_wrong_without_all_pods_is_no_alarm(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(61)
    send(world, "detector-r1", 300)
    send(world, "detector-r2", 100)
    add_pod(world, "detector-r1")

    world.reconcile_now(deployment)

    split = view(world, rollout).guards[0]
    assert (split.guard, split.verdict) == ("Traffic split", "not enough data")


def test_ready_pods_count_once_they_had_the_time_to_be_read(world: World) -> None:
    start(world)
    add_pod(world, "detector-r2", ready_ago=5)
    add_pod(world, "detector-r2", is_ready=False)
    add_pod(world, "detector-r2", gone_at=world.clock.at, ended_at=world.clock.at)
    assert covered(world, "detector-r2") == Coverage(read=0, ready=0, serving=1)

    old = add_pod(world, "detector-r2")
    MetricSample.objects.create(pod=old, at=world.clock.at - timedelta(seconds=31))
    assert covered(world, "detector-r2") == Coverage(read=0, ready=1, serving=2)

    MetricSample.objects.create(pod=old, at=world.clock.at - timedelta(seconds=3))
    assert covered(world, "detector-r2") == Coverage(read=1, ready=1, serving=2)


@pytest.mark.parametrize(
    "labels",
    [
        {"leaderworkerset.sigs.k8s.io/worker-index": "1"},
        {"app": "isvc.detector-r2-predictor-worker"},
    ],
)
def test_pods_that_serve_no_metrics_are_not_waited_for(
    world: World, labels: dict[str, str]
) -> None:
    start(world)
    add_pod(world, "detector-r2", labels=labels)
    add_pod(world, "detector-r2", labels={"leaderworkerset.sigs.k8s.io/worker-index": "0"})

    assert covered(world, "detector-r2") == Coverage(read=0, ready=1, serving=1)
