"""A new deployment: names are checked at once, closed sections say their values, and a failing check refuses."""

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
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def text_of(page: Any) -> str:
    return html.unescape(page.content.decode())


def first_page(world: World, client: Client) -> Any:
    return client.get(f"{URL}?version={world.version1.pk}")


def filled_in(world: World, client: Client, **typed: str) -> Any:
    page = check(client, first_page(world, client), name="street", network_access="open")
    return check(client, page, **typed)


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
def test_a_name_is_refused_at_its_field(
    world: World, client: Client, name: str, message: str
) -> None:
    world.serving()

    page = check(client, first_page(world, client), name=name)

    assert page.status_code == 422
    assert message in text_of(page)
    assert fields_of(page)["name"] == html.escape(name)


@pytest.mark.parametrize("name", ["a", "x" * 30, "a-1", "street-r"])
def test_names_at_the_bound_are_accepted(world: World, client: Client, name: str) -> None:
    page = check(client, first_page(world, client), name=name)

    assert page.status_code == 200
    assert f"{name} is available." in text_of(page)


def test_the_field_shows_its_error_while_typing(world: World, client: Client) -> None:
    typed = {**fields_of(first_page(world, client)), "name": "Street_1"}

    wrong = client.post(URL, typed, **HTMX, HTTP_HX_TARGET="side")
    right = client.post(URL, {**typed, "name": "street"}, **HTMX, HTTP_HX_TARGET="side")

    at_field = pages.page(wrong).part("field-name")
    assert at_field.attributes["hx-swap-oob"] == "true"
    assert "For example 'street-1'." in at_field.text
    assert at_field.field("name").value == "Street_1"
    assert "For example" not in pages.page(right).part("field-name").text


def test_the_first_suggestion_is_free(world: World, client: Client) -> None:
    world.serving()

    assert fields_of(first_page(world, client))["name"] == "detector-2"


def test_a_retired_deployment_gives_its_name_back(world: World, client: Client) -> None:
    world.serving()
    Deployment.objects.update(is_retired=True)

    assert fields_of(first_page(world, client))["name"] == "detector"


def test_closed_sections_say_their_values(world: World, client: Client) -> None:
    typed = {"min_replicas": "2", "max_replicas": "2", "memory": "4Gi", "warm_up": "on"}
    typed |= {
        "storage_model_cache": "volume",
        "storage_volume_claim": "models",
        "env": "APP_A=1\nAPP_B=2",
    }
    shown = pages.page(filled_in(world, client, **typed))

    assert summary_of(shown, "GPU and cluster") == (
        "1 \N{MULTIPLICATION SIGN} A10G (g5.xlarge) on eks-test · chosen for you"
    )
    assert summary_of(shown, "Scaling") == ("fixed at 2 replicas · 9 settings at their defaults")
    assert summary_of(shown, "Engine") == "KServe · Triton"
    assert summary_of(shown, "Batching and Triton") == (
        "dynamic batches, 1 instance per GPU, warmed up · 30 settings at their defaults"
    )
    assert summary_of(shown, "Placement") == "on-demand, spread across zones"
    assert summary_of(shown, "Multi-model serving") == "one model per Triton"
    assert summary_of(shown, "Resources and network") == (
        "2 CPU, 4Gi memory, 2 environment variables · Model cache on a shared volume · Volume claim models · 9 settings at their defaults"
    )


def summary_of(shown: pages.Part, title: str) -> str:
    """Return the summary of values in the heading of a section."""
    section = shown.group(title)
    assert not section.is_open
    return next(section.all("summary")).text.removeprefix(title).strip()


def test_a_failing_check_rests_the_button_and_the_server_refuses_too(
    world: World, client: Client
) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=0)
    page = filled_in(world, client)
    audited = AuditEvent.objects.count()

    assert pages.page(page).buttons["Request deployment"].is_disabled
    assert "1 check fails. Fix it" in text_of(page)
    answer = send(client, page)

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

    page = filled_in(world, client)

    assert "You can still send the request" in text_of(page)
    answer = send(client, page)
    assert answer.status_code == 302
    assert ChangeRequest.objects.count() == 1
