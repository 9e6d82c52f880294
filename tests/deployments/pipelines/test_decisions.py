"""Requests about pipelines are decided on like those about deployments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.selectors import changes
from deployments.changes.selectors.subjects import pipeline_of
from deployments.changes.services import decisions, emergency_override
from deployments.lifecycle.services import apply_changes
from deployments.models import Approval, ChangeRequest, Deployment, EmergencyReview, Pipeline
from deployments.pipelines.services import requests
from deployments.states import ChangeState
from fleet.models import Cluster
from portal.accounts import delegations
from portal.accounts.models import Membership, User
from portal.core.errors import Conflict, Forbidden, Invalid
from portal.notifications import links
from portal.notifications.models import Channel, DecisionLink
from tests.deployments.pipelines_world import (
    approve,
    members,
    node,
    reconcile_now,
    request_change,
    serving,
    step,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World

SignIn = Callable[[User], Client]
REASON = "Checkout is down and this brings the steps back that worked."
OTHER = {"nodes": [node("sequence", step("detector"), step("classifier"))]}


def override(who: User, change: ChangeRequest) -> ChangeRequest:
    return emergency_override.approve(
        actor=who, change_id=change.pk, evidence_hash=change.evidence_hash, reason=REASON
    )


def page_of(client: Client, change: ChangeRequest) -> str:
    return " ".join(client.get(f"/approvals/{change.pk}").content.decode().split())


def test_an_emergency_override_runs_at_once_and_another_person_reviews_it(world: World) -> None:
    change = request_change(world)
    with refused(world, Forbidden, "role_required"):
        override(world.member, change)

    override(world.lead, change)

    assert reconcile_now(pipeline_of(change)).desired_generation == 1
    change.refresh_from_db()
    assert change.state == ChangeState.APPLYING
    review = EmergencyReview.objects.get()
    with refused(world, Forbidden, "four_eyes"):
        emergency_override.close_review(actor=world.lead, review_id=review.pk, finding="Fine.")
    emergency_override.close_review(actor=world.lead2, review_id=review.pk, finding="Fine.")
    assert EmergencyReview.objects.get().closed_by == world.lead2


def test_nobody_overrides_their_own_request(world: World) -> None:
    pipeline = serving(world)
    change = requests.request_retire(actor=world.lead, pipeline_id=pipeline.pk)

    with refused(world, Forbidden, "four_eyes"):
        override(world.lead, change)
    assert changes.may_override(world.lead2, change)


def test_the_api_overrides_checks_and_requests_a_stop(world: World) -> None:
    pipeline = serving(world)
    member, lead = APIClient(), APIClient()
    member.force_authenticate(world.member)
    lead.force_authenticate(world.lead)

    stop = member.post(f"/api/v1/pipelines/{pipeline.pk}/request-stop", {}, format="json").json()
    address = f"/api/v1/pipeline-changes/{stop['id']}"
    body = {"evidence_hash": stop["evidence_hash"], "reason": REASON}
    done = lead.post(f"{address}/approve-in-emergency", body, format="json")

    assert (stop["kind"], stop["desired"]) == ("stop", None)
    assert lead.get(f"{address}/checks").json()["can_approve"] is True
    assert (done.status_code, done.json()["state"]) == (200, "approved")
    assert lead.get(f"/api/v1/changes/{stop['id']}").status_code == 404


def test_a_decision_link_approves_a_pipeline_once(world: World, signed_in: SignIn) -> None:
    Channel.objects.create(
        user=world.lead,
        name="me",
        kind="slack",
        hint="",
        created_by=world.lead,
        created_at=world.clock.at,
    )
    change = request_change(world)
    client = signed_in(world.lead)
    page = client.get(links.path_of(DecisionLink.objects.get()))["Location"]

    shown = client.get(page).content.decode()
    done = client.post(page, {"choice": "approve", "comment": ""})

    assert "Create pipeline both" in shown
    assert "ensemble: detector, classifier (required)" in shown
    assert (done.status_code, done["Location"]) == (302, f"/approvals/{change.pk}")
    assert client.post(page, {"choice": "approve", "comment": ""}).status_code == 409
    assert reconcile_now(pipeline_of(change)).desired_generation == 1


def test_a_decided_request_shows_what_was_decided_on(world: World, signed_in: SignIn) -> None:
    change = request_change(world)
    client = signed_in(world.viewer)
    approve(world.lead, change)
    before = page_of(client, change)

    Deployment.objects.filter(name="classifier").update(is_retired=True)
    Cluster.objects.update(name="another")
    after = page_of(client, change)

    assert "As shown when it was decided" in before
    assert "Changed since" not in before
    assert "Changed since: the manifests, the name of the cluster." in after
    assert "vision on eks-test" in after
    assert "kind: InferenceGraph" in after


def test_what_changed_between_approval_and_run_goes_back_to_its_approvers(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    Cluster.objects.update(gateway_url="http://elsewhere.example")

    assert reconcile_now(pipeline_of(change)).desired_generation == 0

    change.refresh_from_db()
    assert (change.state, change.decided) == (ChangeState.SUBMITTED, {})
    assert Approval.objects.get().void_reason
    approve(world.lead, change)
    assert reconcile_now(pipeline_of(change)).desired_generation == 1


def test_an_approval_by_who_is_no_lead_at_the_run_does_not_count(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    Membership.objects.filter(user=world.lead).update(role="member")

    assert reconcile_now(pipeline_of(change)).desired_generation == 0


def test_the_checks_are_repeated_before_an_approval(world: World) -> None:
    change = request_change(world)
    Cluster.objects.update(serving={"pod_security": "restricted"})

    with refused(world, Invalid) as raised:
        approve(world.lead, change)

    assert "enforce Pod Security restricted" in raised[0].message


def test_a_delegate_approves_a_pipeline_in_the_leads_place(world: World) -> None:
    members(world)
    pipeline = serving(world)
    delegations.name_delegate(
        actor=world.lead,
        team=world.team,
        username="member",
        starts_at=world.clock.at,
        ends_at=world.clock.at + timedelta(days=7),
        reason="holidays",
    )
    change = requests.request_change(actor=world.lead2, pipeline_id=pipeline.pk, spec=OTHER)

    approve(world.member, change)

    approval = Approval.objects.get(change=change)
    assert (approval.as_role, approval.stands_for) == ("delegate", world.lead)
    assert reconcile_now(pipeline).desired_generation == 2


def test_a_worker_that_dies_while_it_begins_leaves_an_approved_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = request_change(world)
    approve(world.lead, change)

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("deployments.pipelines.services.desired_state.wake", die)
        with pytest.raises(SystemExit):
            apply_changes.apply_change(change_id=change.pk)
    change.refresh_from_db()
    assert (change.state, Pipeline.objects.get().desired_generation) == ("approved", 0)

    world.clock.move(31)
    assert reconcile_now(pipeline_of(change)).desired_generation == 1


def test_a_pipeline_has_one_open_request_and_a_request_one_subject(world: World) -> None:
    pipeline = serving(world)
    first = requests.request_change(actor=world.member, pipeline_id=pipeline.pk, spec=OTHER)
    with refused(world, Conflict, "change_open"):
        requests.request_retire(actor=world.member, pipeline_id=pipeline.pk)

    wrong: list[dict[str, Any]] = [
        {"deployment": Deployment.objects.first()},
        {"pipeline": None},
        {"kind": "canary"},
    ]
    for columns in wrong:
        with pytest.raises(IntegrityError), transaction.atomic():
            ChangeRequest.objects.filter(pk=first.pk).update(**columns)
    decisions.withdraw(actor=world.member, change_id=first.pk)
    assert requests.request_retire(actor=world.member, pipeline_id=pipeline.pk).pk != first.pk
