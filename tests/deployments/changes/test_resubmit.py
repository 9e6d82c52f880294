"""Edit and resubmit: the form begins with a request's values, and the new request takes its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.changes.services import decisions, requests, resubmissions
from deployments.models import ChangeRequest, Deployment, Model
from deployments.states import ChangeState
from portal.accounts.models import Role, User
from tests.accounts import make_membership, make_team
from tests.deployments.changes.test_api import client as rest
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
REST = "/api/v1/deployments"


@pytest.fixture
def client(world: World, signed_in: SignIn) -> Client:
    return signed_in(world.member)


@pytest.fixture
def asked(world: World) -> ChangeRequest:
    draft = world.draft("street", "staging", memory="9Gi")
    return requests.request_deploy(actor=world.member, draft=draft, comment="for the yard")


def find_new(asked: ChangeRequest) -> ChangeRequest:
    return ChangeRequest.objects.exclude(pk=asked.pk).get()


def test_the_form_begins_with_the_values_of_the_request(
    client: Client, asked: ChangeRequest
) -> None:
    head = page(client.get(f"/approvals/{asked.pk}"))
    assert head.links["Edit and resubmit"] == f"{URL}?replaces={asked.pk}"

    form = client.get(head.links["Edit and resubmit"])

    sent = fields_of(form)
    assert {name: sent[name] for name in ("name", "environment", "memory", "comment")} == {
        "name": "street",
        "environment": "staging",
        "memory": "9Gi",
        "comment": "for the yard",
    }
    assert f"Replaces request {asked.pk}, which is withdrawn when you send this one." in (
        page(form).text
    )
    assert "street is available." in page(form).text


def test_the_new_request_withdraws_the_old_one_and_names_it(
    client: Client, asked: ChangeRequest
) -> None:
    form = check(client, client.get(f"{URL}?replaces={asked.pk}"), memory="10Gi")

    answer = send(client, form)

    new = find_new(asked)
    assert answer["Location"] == f"/approvals/{new.pk}"
    asked.refresh_from_db()
    assert (asked.state, asked.state_reason) == ("withdrawn", "Replaced by a new request.")
    assert (new.state, new.replaces_id) == ("submitted", asked.pk)
    assert new.revision is not None
    assert new.revision.spec["memory"] == "10Gi"
    assert [row.is_retired for row in Deployment.objects.filter(name="street").order_by("pk")] == [
        True,
        False,
    ]
    links = page(client.get(f"/approvals/{new.pk}")).links
    assert links[f"request {asked.pk}"] == f"/approvals/{asked.pk}"
    old = page(client.get(f"/approvals/{asked.pk}"))
    assert old.links[f"request {new.pk}"] == f"/approvals/{new.pk}"
    assert "Edit and resubmit" not in old.links


def test_a_rejected_request_is_resubmitted_and_stays_rejected(
    world: World, client: Client, asked: ChangeRequest
) -> None:
    decisions.reject(actor=world.lead, change_id=asked.pk, comment="one GPU is enough")

    send(client, client.get(f"{URL}?replaces={asked.pk}"))

    asked.refresh_from_db()
    assert asked.state == ChangeState.REJECTED
    assert find_new(asked).replaces_id == asked.pk


def test_a_refused_form_leaves_the_old_request_as_it_is(
    client: Client, asked: ChangeRequest
) -> None:
    answer = send(
        client, client.get(f"{URL}?replaces={asked.pk}"), min_replicas="9", max_replicas="9"
    )

    assert answer.status_code == 422
    assert fields_of(answer)["replaces"] == str(asked.pk)
    asked.refresh_from_db()
    assert asked.state == ChangeState.SUBMITTED
    assert ChangeRequest.objects.count() == 1


def test_a_request_that_was_approved_meanwhile_is_not_replaced(
    world: World, client: Client, asked: ChangeRequest
) -> None:
    form = client.get(f"{URL}?replaces={asked.pk}")
    world.approved(asked)

    answer = send(client, form)

    assert answer.status_code == 409
    assert "Only a deployment that waits for approval" in page(answer).text
    asked.refresh_from_db()
    assert asked.state == ChangeState.APPLYING
    assert ChangeRequest.objects.count() == 1


def test_only_the_requester_edits_and_resubmits(
    world: World, signed_in: SignIn, asked: ChangeRequest
) -> None:
    lead = signed_in(world.lead)

    assert "Edit and resubmit" not in page(lead.get(f"/approvals/{asked.pk}")).links
    assert lead.get(f"{URL}?replaces={asked.pk}").status_code == 403
    assert signed_in(world.stranger).get(f"{URL}?replaces={asked.pk}").status_code == 404
    assert ChangeRequest.objects.count() == 1


def test_rest_resubmits_by_the_same_rules(world: World, asked: ChangeRequest) -> None:
    body = {**resubmissions.request_body(asked), "replaces_id": asked.pk}
    draft = {name: value for name, value in body.items() if name != "comment"}
    member, other = rest(world.member), rest(world.lead)

    taken = member.post(f"{REST}/preflight", {**draft, "replaces_id": None}, format="json")
    free = member.post(f"{REST}/preflight", draft, format="json")
    refused = other.post(REST, body, format="json")
    kept = ChangeRequest.objects.get()
    made = member.post(REST, body, format="json")
    again = member.post(REST, body, format="json")

    assert [answer.data["can_submit"] for answer in (taken, free)] == [False, True]
    assert (refused.status_code, refused.data["code"]) == (403, "not_the_requester")
    assert kept.state == ChangeState.SUBMITTED
    assert (made.status_code, made.data["replaces_id"]) == (201, asked.pk)
    assert (again.status_code, again.data["code"]) == (409, "change_state")
    asked.refresh_from_db()
    assert asked.state == ChangeState.WITHDRAWN
    assert find_new(asked).pk == made.data["id"]


def test_a_request_of_another_team_is_not_replaced(world: World, asked: ChangeRequest) -> None:
    body = {**resubmissions.request_body(asked), "replaces_id": asked.pk}
    other = make_team(slug="audio")
    make_membership(user=world.member, team=other, role=Role.MEMBER)
    Model.objects.filter(pk=world.version1.model_id).update(team=other)

    answer = rest(world.member).post(REST, body, format="json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.data["errors"]] == ["version_id"]
    asked.refresh_from_db()
    assert asked.state == ChangeState.SUBMITTED
    assert ChangeRequest.objects.count() == 1
