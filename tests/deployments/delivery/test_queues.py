"""A deployment in a queue of Kueue: where its pods stand, and that waiting is no failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, DeploymentEvent, Rollout
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.spec.domain.serving_spec import Placement
from fleet.kube.domain.errors import NotAllowed
from portal.accounts.models import User
from tests.deployments import queues
from tests.deployments.queues import FULL, QUEUE
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

HALF_AN_HOUR = 30 * 60


@pytest.fixture
def kueue(world: World) -> World:
    queues.install(world)
    return world


def requested(world: World) -> Deployment:
    """Approved and applied; its only pod waits."""
    draft = world.draft(placement=Placement(queue=QUEUE))
    change = requests.request_deploy(actor=world.member, draft=draft)
    world.approved(change)
    deployment = deployment_of(change)
    queues.gate(world, deployment, "detector-r1", position=2)
    return world.reconcile_now(deployment)


def of_stable(deployment: Deployment) -> ObservedRevision:
    return ObservedRevision.from_column(deployment.observed, 1)


def queue_lines() -> list[str]:
    rows = DeploymentEvent.objects.filter(kind="queue").order_by("pk")
    return list(rows.values_list("message", flat=True))


def test_the_position_and_the_reason_are_observed(kueue: World) -> None:
    deployment = requested(kueue)

    queue = of_stable(deployment).queue
    assert queue is not None
    assert (queue.state, queue.position, queue.waiting, queue.why) == ("pending", 3, 1, FULL)
    assert deployment.state == "progressing"
    assert deployment.state_reason == f"1 pod waits in queue {QUEUE}, position 3: {FULL}"


def test_the_timeline_has_a_line_for_a_change_of_state_and_not_of_the_position(
    kueue: World,
) -> None:
    deployment = requested(kueue)
    queues.gate(kueue, deployment, "detector-r1", position=0)
    moved = of_stable(kueue.reconcile_now(deployment)).queue
    queues.admit(kueue, deployment, "detector-r1")
    deployment = kueue.reconcile_now(deployment)

    assert moved is not None
    assert moved.position == 1
    assert deployment.state == "ready"
    assert queue_lines() == [
        f"detector-r1: 1 pod waits in queue {QUEUE}, position 3: {FULL}",
        f"detector-r1: admitted by queue {QUEUE}",
    ]


def test_waiting_for_days_is_no_failure_and_a_start_has_all_its_time_afterwards(
    kueue: World,
) -> None:
    deployment = requested(kueue)
    for _ in range(3):
        kueue.clock.move(24 * 3600)
        deployment = kueue.reconcile_now(deployment)
        assert (deployment.state, deployment.is_stopped) == ("progressing", False)
    assert ChangeRequest.objects.get().state == "applying"
    assert deployment.progress_deadline_at == kueue.clock.at + timedelta(seconds=HALF_AN_HOUR)

    kueue.cluster.make_ready("detector-r1", is_ready=False)
    kueue.clock.move(HALF_AN_HOUR - 60)
    assert kueue.reconcile_now(deployment).is_stopped is False
    kueue.clock.move(120)
    assert kueue.reconcile_now(deployment).is_stopped is True
    assert ChangeRequest.objects.get().state == "failed"


def test_an_eviction_is_shown_until_its_pods_are_admitted_again(kueue: World) -> None:
    deployment = requested(kueue)
    queues.admit(kueue, deployment, "detector-r1")
    kueue.reconcile_now(deployment)
    queues.evict(kueue, "detector-r1", "Preempted to accommodate a higher priority workload")
    ended = of_stable(kueue.reconcile_now(deployment)).queue
    del kueue.cluster.objects["Pod", queues.NAMESPACE, "detector-r1-0"]
    between = of_stable(kueue.reconcile_now(deployment)).queue
    queues.gate(kueue, deployment, "detector-r1")
    waiting = kueue.reconcile_now(deployment)

    assert ended is not None
    assert ended.state == "evicted"
    assert between == ended
    queue = of_stable(waiting).queue
    assert queue is not None
    assert (queue.state, queue.position) == ("evicted", 1)
    assert waiting.state == "degraded"
    assert waiting.state_reason.startswith(
        "evicted (Preempted to accommodate a higher priority workload); 1 pod waits in queue"
    )
    queues.admit(kueue, deployment, "detector-r1")
    again = kueue.reconcile_now(deployment)
    queue = of_stable(again).queue
    assert queue is not None
    assert (again.state, queue.state, queue.eviction) == ("ready", "admitted", "")


def test_a_queue_that_kueue_ignores_is_said(
    kueue: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = kueue.serving(placement=Placement(queue=QUEUE))

    queue = of_stable(deployment).queue
    assert queue is not None
    assert (deployment.state, queue.state) == ("ready", "ignored")
    assert queue_lines() == [
        f"detector-r1: Kueue does not manage its pods, so queue {QUEUE} has no effect"
    ]
    address = reverse("deployment", args=("vision", "detector"))
    page = signed_in(kueue.viewer).get(address).content.decode()
    assert "Queue serving has no effect on detector-r1" in page


def test_without_permission_the_position_is_not_known_and_the_reason_says_so(
    kueue: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = kueue.cluster.list_all

    def refusing(kind: object, **options: object) -> object:
        if getattr(kind, "kind", "") == "Workload":
            raise NotAllowed("workloads.kueue.x-k8s.io is forbidden")
        return listed(kind, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(kueue.cluster, "list_all", refusing)
    deployment = requested(kueue)

    assert deployment.state_reason == (
        f"1 pod waits in queue {QUEUE}, position not known: its Workloads cannot be read: "
        "workloads.kueue.x-k8s.io is forbidden"
    )


def test_of_a_stopped_cluster_queue_it_says_that_it_is_stopped(kueue: World) -> None:
    """Its Workload says no more than that it is inactive."""
    deployment = requested(kueue)
    queues.put_cluster_queue(kueue, stopPolicy="Hold")
    workload = next(item for key, item in kueue.cluster.objects.items() if key[0] == "Workload")
    workload["status"]["conditions"] = [
        queues.condition("QuotaReserved", "False", "Inadmissible", "ClusterQueue gpus is inactive")
    ]

    queue = of_stable(kueue.reconcile_now(deployment)).queue

    assert queue is not None
    assert queue.why == "ClusterQueue gpus is inactive: it is stopped (Hold)"
    del kueue.cluster.objects["ClusterQueue", "", "gpus"]
    queue = of_stable(kueue.reconcile_now(deployment)).queue
    assert queue is not None
    assert queue.why == "ClusterQueue gpus is inactive"


def test_no_rollout_ends_because_its_candidate_waits(kueue: World) -> None:
    deployment = kueue.serving(placement=Placement(queue=QUEUE))
    change = requests.request_canary(
        actor=kueue.member,
        deployment_id=deployment.pk,
        version_id=kueue.version2.pk,
        steps=[{"weight": 10, "soak_seconds": 60, "min_requests": 100}],
        plan=AT_ONCE,
    )
    kueue.approved(change)
    kueue.reconcile_now(deployment)
    queues.gate(kueue, deployment, "detector-r2", position=4)
    for _ in range(8):
        kueue.reconcile_now(deployment)
        kueue.clock.move(10 * 60)

    rollout = Rollout.objects.get()
    assert rollout.phase == "preparing"
    assert "position 5" in rollout.phase_reason
    queues.admit(kueue, deployment, "detector-r2")
    kueue.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == "running"


def test_the_page_and_rest_say_where_it_stands(
    kueue: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = requested(kueue)
    address = reverse("deployment", args=("vision", "detector"))
    page = signed_in(kueue.viewer).get(address).content.decode()
    rest = APIClient()
    rest.force_authenticate(kueue.viewer)
    body = rest.get(f"/api/v1/deployments/{deployment.pk}").json()

    assert "detector-r1 waits in queue serving" in page
    assert "position 3" in page
    assert body["observed"]["revisions"]["r1"]["queue"] == {
        "queue": QUEUE,
        "state": "pending",
        "waiting": 1,
        "position": 3,
        "why": FULL,
        "eviction": "",
    }
