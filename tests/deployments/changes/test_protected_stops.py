"""In production a stop needs the approval that a start needs, on the page and by API."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.states import ChangeState, DeploymentState
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, NotFound
from tests.deployments import canaries
from tests.deployments.refusals import refused
from tests.deployments.world import World


def api(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.mark.parametrize("who", ["member", "lead", "admin"])
def test_stopping_production_needs_an_approval(world: World, who: str) -> None:
    deployment = world.serving()

    with refused(world, Forbidden, "approval_required"):
        stop.stop(actor=getattr(world, who), deployment_id=deployment.pk)

    assert not Deployment.objects.get().is_stopped


def test_the_api_refuses_it_with_the_same_message(world: World) -> None:
    deployment = world.serving()

    answer = api(world.lead).post(f"/api/v1/deployments/{deployment.pk}/stop", {}, format="json")

    assert (answer.status_code, answer.data["code"]) == (403, "approval_required")
    assert "the same approval as starting it" in answer.data["detail"]
    assert not Deployment.objects.get().is_stopped


def test_an_approved_request_stops_it(world: World) -> None:
    deployment = world.serving()
    response = api(world.member).post(
        f"/api/v1/deployments/{deployment.pk}/changes",
        {"kind": "stop", "comment": "costs too much"},
        format="json",
    )
    assert response.status_code == 201, response.data
    assert world.reconcile_now(deployment).state == DeploymentState.READY
    change = ChangeRequest.objects.get(kind="stop")

    world.approved(change)
    world.reconcile_now(deployment)

    change.refresh_from_db()
    assert (deployment.state, change.state) == (DeploymentState.STOPPED, ChangeState.DONE)
    assert world.cluster.names("InferenceService") == []
    event = AuditEvent.objects.get(action="deployment.stopped")
    assert (event.actor_name, event.reason) == ("slipway", "costs too much")
    start = requests.request_start(actor=world.member, deployment_id=deployment.pk)
    assert world.approved(start).state == ChangeState.APPLYING


def test_the_requester_does_not_approve_their_own_stop(world: World) -> None:
    deployment = world.serving()
    change = requests.request_stop(actor=world.lead, deployment_id=deployment.pk)

    with refused(world, Forbidden, "four_eyes"):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    decisions.approve(actor=world.lead2, change_id=change.pk, evidence_hash=change.evidence_hash)
    world.work()
    assert Deployment.objects.get().is_stopped


@pytest.mark.parametrize(("who", "error"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_who_may_not_request_a_stop(world: World, who: str, error: type[DomainError]) -> None:
    deployment = world.serving()

    with refused(world, error):
        requests.request_stop(actor=getattr(world, who), deployment_id=deployment.pk)


@pytest.mark.parametrize("environment", ["development", "staging"])
def test_elsewhere_a_member_stops_at_once(world: World, environment: str) -> None:
    deployment = world.serving(environment=environment)

    stop.stop(actor=world.member, deployment_id=deployment.pk)

    assert world.reconcile_now(deployment).state == DeploymentState.STOPPED


def test_what_never_served_stops_at_once_in_production_too(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)

    stop.stop(actor=world.member, deployment_id=deployment_of(change).pk)

    assert Deployment.objects.get().is_stopped


def test_a_rollout_in_production_is_paused_and_aborted_by_any_member(world: World) -> None:
    deployment, rollout = canaries.start(world)
    with refused(world, Conflict, "change_open"):
        requests.request_stop(actor=world.member, deployment_id=deployment.pk)

    actions.pause(actor=world.member, rollout_id=rollout.pk)
    actions.abort(actor=world.member, rollout_id=rollout.pk)

    assert Rollout.objects.get().phase == "aborting"


def test_what_is_stopped_takes_no_second_stop(world: World) -> None:
    deployment = world.serving()
    world.approved(requests.request_stop(actor=world.member, deployment_id=deployment.pk))
    world.reconcile_now(deployment)

    with refused(world, Conflict, "stopped"):
        requests.request_stop(actor=world.member, deployment_id=deployment.pk)
