"""A first deployment that cannot load ends: it releases its GPU at its deadline, or on request."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, DeploymentEvent
from deployments.serving.services import desired_state
from fleet.kube.domain.errors import Unreachable
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict
from portal.notifications.models import Notice
from tests.deployments.decided_changes import approve, request_change
from tests.deployments.refusals import refused
from tests.deployments.world import World

LAST = {"terminated": {"exitCode": 1, "message": "failed to load 'detector'"}}
BACK_OFF: dict[str, Any] = {
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": LAST,
    "restartCount": 3,
}
AGAIN: dict[str, Any] = {"state": {"running": {}}, "lastState": LAST, "restartCount": 3}


def begun(world: World) -> Deployment:
    return world.play("begun", lambda: _begin(world))


def _begin(world: World) -> Deployment:
    change = request_change(world)
    world.approved(change)
    return deployment_of(change)


def pod(world: World, container: dict[str, Any]) -> None:
    workload = world.cluster.objects["InferenceService", "vision", "detector-r1"]
    workload["status"] = {"modelStatus": {"transitionStatus": "InProgress"}}
    labels = workload["spec"]["predictor"]["labels"]
    status = {"phase": "Running", "containerStatuses": [container]}
    world.cluster.put_pod("vision", "detector-r1-0", labels, status)


def states(deployment: Deployment) -> list[str]:
    rows = DeploymentEvent.objects.filter(deployment=deployment, kind="state")
    return [row.message.partition(":")[0] for row in rows.order_by("id")]


def late(world: World, deployment: Deployment) -> Deployment:
    world.clock.move(desired_state.PROGRESS_SECONDS)
    return world.reconcile_now(deployment)


def test_a_pod_that_crashes_and_restarts_does_not_swing_the_state(world: World) -> None:
    deployment = begun(world)

    for container in (BACK_OFF, AGAIN, BACK_OFF, AGAIN):
        pod(world, container)
        world.reconcile_now(deployment)
        world.clock.move(60)

    assert states(deployment) == ["progressing", "degraded"]
    world.cluster.make_ready("detector-r1")
    assert world.reconcile_now(deployment).state == "ready"


@pytest.mark.parametrize("container", [BACK_OFF, AGAIN])
def test_at_its_deadline_it_is_stopped_and_the_request_fails_with_the_reason(
    world: World, container: dict[str, Any]
) -> None:
    deployment = begun(world)
    pod(world, container)
    world.reconcile_now(deployment)
    world.clock.move(desired_state.PROGRESS_SECONDS - 1)
    assert world.reconcile_now(deployment).is_stopped is False

    world.clock.move(1)
    world.reconcile_now(deployment)
    deployment = world.reconcile_now(deployment)

    change = ChangeRequest.objects.get()
    assert (change.state, "failed to load 'detector'" in change.state_reason) == ("failed", True)
    assert world.cluster.names("InferenceService") == []
    assert world.cluster.names("Pod") == []
    assert (deployment.state, deployment.state_reason) == ("stopped", change.state_reason)
    assert AuditEvent.objects.get(action="deployment.stopped").actor_name == "slipway"
    notice = Notice.objects.get(event="deployment.failing")
    assert notice.subject == "vision/detector failed to start"
    for _ in range(3):
        world.clock.move(desired_state.PROGRESS_SECONDS)
        world.reconcile_now(deployment)
    assert states(deployment)[-1] == "stopped"
    assert AuditEvent.objects.filter(action="deployment.stopped").count() == 1


def test_given_up_it_can_be_started_again_or_retired(world: World) -> None:
    deployment = begun(world)
    late(world, deployment)
    world.reconcile_now(deployment)

    start = requests.request_start(actor=world.member, deployment_id=deployment.pk)
    world.approved(start)
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    late(world, deployment)
    deployment = world.reconcile_now(deployment)
    assert (deployment.state, world.cluster.names("InferenceService")) == ("stopped", [])
    retire = requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    world.approved(retire)

    assert world.reconcile_now(deployment).is_retired


def test_what_served_before_is_not_given_up(world: World) -> None:
    deployment = world.serving()
    world.cluster.make_ready("detector-r1", is_ready=False)

    deployment = late(world, deployment)

    assert (deployment.state, deployment.is_stopped) == ("degraded", False)


def test_a_cluster_that_does_not_answer_stops_nothing(world: World) -> None:
    deployment = begun(world)
    world.cluster.fail_with = Unreachable("connection refused")

    deployment = late(world, deployment)

    assert (ChangeRequest.objects.get().state, deployment.is_stopped) == ("failed", False)
    world.cluster.fail_with = None
    world.cluster.make_ready("detector-r1")
    world.clock.move(120)
    assert world.reconcile_now(deployment).state == "ready"


def test_after_an_outage_a_deployment_still_not_ready_is_given_up(world: World) -> None:
    deployment = begun(world)
    world.cluster.fail_with = Unreachable("connection refused")
    late(world, deployment)

    world.cluster.fail_with = None
    world.clock.move(120)
    world.reconcile_now(deployment)
    deployment = world.reconcile_now(deployment)

    assert (deployment.state, world.cluster.names("InferenceService")) == ("stopped", [])


def test_it_is_stopped_on_request_while_it_still_tries(world: World) -> None:
    deployment = begun(world)
    pod(world, BACK_OFF)
    world.reconcile_now(deployment)

    stop.stop(actor=world.member, deployment_id=deployment.pk, reason="the wrong file")
    deployment = world.reconcile_now(deployment)

    assert (deployment.state, ChangeRequest.objects.get().state) == ("stopped", "failed")
    assert world.cluster.names("InferenceService") == []


def test_a_request_to_retire_it_stops_it_at_once(world: World) -> None:
    deployment = begun(world)
    pod(world, AGAIN)
    world.reconcile_now(deployment)

    retire = requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    deployment = world.reconcile_now(deployment)

    first = ChangeRequest.objects.get(kind="deploy")
    assert (first.state, first.state_reason) == (
        "failed",
        "It never became ready, and its retirement was requested.",
    )
    assert (deployment.state, world.cluster.names("InferenceService")) == ("stopped", [])
    approve(world.lead, retire)
    world.work()
    assert world.reconcile_now(deployment).is_retired


def test_what_has_served_is_not_stopped_by_a_request_to_retire_it(world: World) -> None:
    deployment = world.serving()
    scale = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )
    approve(world.lead, scale)
    world.work()

    with refused(world, Conflict, "change_open") as raised:
        requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    assert "stop the deployment" in str(raised[0])


def test_withdrawing_what_is_being_applied_names_the_way_out(world: World) -> None:
    deployment = begun(world)

    with refused(world, Conflict, "change_state") as raised:
        decisions.withdraw(actor=world.member, change_id=ChangeRequest.objects.get().pk)

    assert f"Stop {deployment}" in str(raised[0])
