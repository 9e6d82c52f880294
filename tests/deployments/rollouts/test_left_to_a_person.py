"""What no guard can judge is left to a person, whatever the plan says: no reading, or another load."""

from __future__ import annotations

from datetime import timedelta

from deployments.models import Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from fleet.models import MetricSample, Pod, Workload
from portal.audit.models import AuditEvent
from portal.notifications.models import Notice
from tests.deployments.canaries import send, view
from tests.deployments.guarded_rollouts import begin, interval, weights
from tests.deployments.world import World
from tests.rollout_plans import OF_SERVERS

AUTO = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100, "auto_promote": True},
    {"weight": 50, "soak_seconds": 60, "min_requests": 100},
]


def _fill(world: World, deployment: Deployment, *, latency_us: int = 4000) -> Rollout:
    """All that the first step requires."""
    world.clock.move(61)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100, latency_us=latency_us)
    world.reconcile_now(deployment)
    return Rollout.objects.get()


def _pods(world: World, name: str, count: int) -> None:
    """So many ready pods, the first of which is the one of `send`."""
    at = world.clock.at
    for number in range(count):
        pod_name = name if number == 0 else f"{name}-{number}"
        row = {
            "workload": Workload.objects.get(name=name),
            "namespace": "vision",
            "name": pod_name,
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
            "is_ready": True,
        }
        Pod.objects.update_or_create(cluster_id=world.cluster_id, uid=pod_name, defaults=row)


def _read_all(world: World) -> None:
    for pod in Pod.objects.exclude(name__in=["detector-r1", "detector-r2"]):
        MetricSample.objects.create(pod=pod, at=world.clock.at)


def test_requests_that_nobody_counts_are_not_promoted_automatically(world: World) -> None:
    deployment, _ = begin(world, steps=AUTO)

    rollout = _fill(world, deployment)

    shown = view(world, rollout)
    assert [guard.verdict for guard in shown.guards] == ["pass", "pass", "pass", "not known"]
    assert (rollout.phase, rollout.step_index) == (RolloutPhase.RUNNING, 0)
    assert weights(world)["detector-r2-predictor"] == 10
    assert shown.promotable_reason == (
        "soak done, enough requests, no guard failed. It is not promoted automatically, because "
        "some guards gave no verdict: lost requests not known"
    )
    waits = Notice.objects.get(event="rollout.waits")
    assert "lost requests not known" in waits.message
    assert not AuditEvent.objects.filter(action="rollout.promoted").exists()

    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash)
    promoted = AuditEvent.objects.get(action="rollout.promoted")
    assert (promoted.actor_name, Rollout.objects.get().step_index) == ("lead", 1)


def test_an_automatic_plan_notifies_nobody_to_decide(world: World) -> None:
    deployment, _ = begin(world, steps=AUTO, guards=OF_SERVERS)

    assert _fill(world, deployment).step_index == 1
    assert not Notice.objects.filter(event="rollout.waits").exists()


def test_one_pod_with_a_ninth_of_the_load_is_not_comparable(world: World) -> None:
    deployment, _ = begin(world, steps=AUTO, guards=OF_SERVERS)
    _pods(world, "detector-r1", 1)
    _pods(world, "detector-r2", 1)

    rollout = _fill(world, deployment)

    latency = view(world, rollout).guards[2]
    assert (latency.guard, latency.verdict) == ("Mean latency", "not comparable")
    assert latency.message == (
        "each candidate pod gets 11% of the load of a stable pod "
        "(10% of requests on 1 pod, 90% of requests on 1 pod)"
    )
    assert (rollout.phase, rollout.step_index) == (RolloutPhase.RUNNING, 0)
    assert view(world, rollout).is_promotable, "a person may"
    assert "mean latency not comparable" in rollout.phase_reason


def test_slower_at_another_load_is_not_aborted_and_errors_are(world: World) -> None:
    deployment, rollout = begin(world, guards=OF_SERVERS, is_calm=True)
    _pods(world, "detector-r1", 1)
    _pods(world, "detector-r2", 1)
    for _ in range(30):
        interval(world, deployment, latency_us=28_000)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.RUNNING
    assert view(world, rollout).guards[2].verdict == "not comparable"

    world.clock.move(5)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 20, failure=80)
    world.reconcile_now(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert rollout.events.get(kind="aborting").message.startswith("aborted: error ratio: worse")


def test_nine_pods_beside_one_are_comparable_and_promoted_automatically(world: World) -> None:
    deployment, _ = begin(world, steps=AUTO, guards=OF_SERVERS)
    _pods(world, "detector-r1", 9)
    _pods(world, "detector-r2", 1)
    world.clock.move(61)
    _read_all(world)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)

    world.reconcile_now(deployment)

    assert Rollout.objects.get().step_index == 1
    assert weights(world)["detector-r2-predictor"] == 50
