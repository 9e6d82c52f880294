"""The wizard: names are checked at once, Review says every choice, and a failing check refuses."""

from __future__ import annotations

import html
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.models import ChangeRequest, Deployment
from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from tests import page as pages
from tests.deployments.changes.test_new_deployment import URL, fields_of, go_on
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def text_of(page: Any) -> str:
    return html.unescape(page.content.decode())


def serving_step(world: World, client: Client) -> Any:
    return client.get(f"{URL}?version={world.version1.pk}")


def review(world: World, client: Client, **typed: str) -> Any:
    page = go_on(
        client, serving_step(world, client), "scaling", name="street", network_access="open"
    )
    return go_on(client, page, "review", **typed)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Street_1", "use lowercase letters, digits and '-'"),
        ("1street", "start with a letter"),
        ("street-", "end with a letter or digit"),
        ("street-r1", "ends like a revision name"),
        ("x" * 31, "Shorten it to 30"),
        ("straße", "use lowercase letters"),
        ("a b", "use lowercase letters"),
        ("detector", "vision/detector already exists on this cluster"),
    ],
)
def test_a_name_is_refused_at_its_field_before_the_next_step(
    world: World, client: Client, name: str, message: str
) -> None:
    world.serving()

    page = go_on(client, serving_step(world, client), "scaling", name=name)

    assert page.status_code == 422
    assert fields_of(page)["at"] == "serving"
    assert message in text_of(page)
    assert fields_of(page)["name"] == html.escape(name)


@pytest.mark.parametrize("name", ["a", "x" * 30, "a-1", "street-r"])
def test_names_at_the_bound_go_on(world: World, client: Client, name: str) -> None:
    page = go_on(client, serving_step(world, client), "scaling", name=name)

    assert fields_of(page)["at"] == "scaling"


def test_the_field_shows_its_error_while_typing(world: World, client: Client) -> None:
    typed = {**fields_of(serving_step(world, client)), "name": "Street_1"}

    wrong = client.post(URL, typed, **HTMX, HTTP_HX_TARGET="side")
    right = client.post(URL, {**typed, "name": "street"}, **HTMX, HTTP_HX_TARGET="side")

    at_field = pages.page(wrong).part("name-problem")
    assert at_field.attributes["hx-swap-oob"] == "true"
    assert "For example 'street-1'." in at_field.text
    assert pages.page(right).part("name-problem").text == ""


def test_the_first_suggestion_is_free(world: World, client: Client) -> None:
    world.serving()

    assert fields_of(serving_step(world, client))["name"] == "detector-2"


def test_a_retired_deployment_gives_its_name_back(world: World, client: Client) -> None:
    world.serving()
    Deployment.objects.update(is_retired=True)

    assert fields_of(serving_step(world, client))["name"] == "detector"


def test_review_says_every_choice_and_leads_back_to_its_step(world: World, client: Client) -> None:
    page = review(world, client, min_replicas="1", max_replicas="2", memory="4Gi", warm_up="on")
    chosen = pages.page(page).part("chosen")

    assert chosen.term("Version") == "detector:1"
    assert chosen.term("Name") == "street"
    assert chosen.term("Environment") == "production"
    assert chosen.term("Engine") == "KServe · Triton"
    assert chosen.term("GPU") == "1 GPU of g5.xlarge"
    assert (chosen.term("Min replicas"), chosen.term("Max replicas")) == ("1", "2")
    assert chosen.term("Memory") == "4Gi"
    assert chosen.term("Warm up") == "on"
    assert not {"None", "True"} & {value.text for value in chosen.all("dd")}
    assert [button.value for button in chosen.all("button")] == ["model", "serving", "scaling"]
    back = go_on(client, page, "serving")
    assert (fields_of(back)["at"], fields_of(back)["name"]) == ("serving", "street")


def test_a_failing_check_rests_the_button_and_the_server_refuses_too(
    world: World, client: Client
) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=0)
    page = review(world, client)
    audited = AuditEvent.objects.count()

    assert pages.page(page).buttons["Request deployment"].is_disabled
    assert "1 check fails. Fix it" in text_of(page)
    answer = go_on(client, page, "submit")

    assert answer.status_code == 422
    assert not Deployment.objects.exists()
    assert not ChangeRequest.objects.exists()
    assert AuditEvent.objects.count() == audited


def test_the_api_refuses_the_same(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=0)
    api = APIClient()
    api.force_authenticate(world.member)
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "street",
        "spec": {
            "engine": "kserve-triton",
            "instance_type": "g5.xlarge",
            "network": {"access": "open"},
        },
    }

    quota = api.post("/api/v1/deployments", body, format="json")
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=8)
    name = api.post("/api/v1/deployments", {**body, "name": "Street_1"}, format="json")

    assert (quota.status_code, quota.data["code"]) == (422, "quota_exceeded")
    assert name.status_code == 422
    assert not Deployment.objects.exists()


def test_a_warning_is_said_and_may_be_overridden(world: World, client: Client) -> None:
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal(1))

    page = review(world, client)

    assert "You can still send the request" in text_of(page)
    answer = go_on(client, page, "submit")
    assert answer.status_code == 302
    assert ChangeRequest.objects.count() == 1
