"""The tab Callers and its REST: a key is shown once, to whoever makes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.models import CallerKey
from deployments.serving.gateways import inference
from deployments.serving.gateways.inference import Answer
from tests.deployments.callers.test_keys import at_gateway, keyed, make
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_TAB = "/vision/deployments/detector/callers"
_TRY = "/vision/deployments/detector/try"
_NEW = {"name": "billing", "kind": "service", "contact": "ana@example.org", "days": "90"}


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_lead_makes_rotates_and_revokes_a_key_on_the_page(world: World) -> None:
    deployment = keyed(world)
    client = signed_in(world.lead)

    answer = client.post(_TAB, _NEW)
    world.work()

    row = CallerKey.objects.get()
    plain = at_gateway(world)[f"billing.{row.pk}"]
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert page(answer).part("new-key").text == plain
    assert plain not in client.get(_TAB).content.decode()

    chosen = {"overlap_hours": "1", "days": "14"}
    too_long = client.post(_TAB, {"action": "rotate", "key_id": str(row.pk), "days": "366"})
    kept = CallerKey.objects.get()
    rotated = client.post(_TAB, {"action": "rotate", "key_id": str(row.pk), **chosen})
    again = client.post(_TAB, {"action": "rotate", "key_id": str(row.pk), "overlap_hours": "1"})
    revoked = client.post(_TAB, {"action": "revoke", "key_id": str(row.pk)})
    world.work()

    new = CallerKey.objects.exclude(pk=row.pk).get()
    assert (too_long.status_code, kept.rotated_at) == (422, None)
    assert "The lifetime must be 1 to 365 days." in page(too_long).text
    assert new.ends_at - new.created_at == timedelta(days=14)
    assert CallerKey.objects.get(pk=row.pk).ends_at > new.created_at
    assert (rotated.status_code, again.status_code, revoked.status_code) == (200, 409, 302)
    assert "was already rotated" in page(again).text
    assert at_gateway(world) == {f"billing.{new.pk}": page(rotated).part("new-key").text}
    assert deployment.caller_keys.count() == 2


def test_a_member_sees_names_and_no_form(world: World) -> None:
    deployment = world.serving()
    made = make(world, deployment)

    shown = page(signed_in(world.member).get(_TAB))

    assert "billing" in shown.text
    assert made.row.prefix in shown.text
    assert made.plain not in shown.text
    assert "New key" not in shown.text
    assert "Revoke" not in shown.text
    assert "Public: anyone who reaches the gateway can call this deployment" in shown.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "No Spaces"}, "lowercase letters, digits and hyphens"),
        ({"contact": ""}, "Enter a contact"),
        ({"days": "4000"}, "The lifetime must be 1 to 365 days."),
    ],
)
def test_what_the_page_refuses_it_explains(
    world: World, changed: dict[str, str], message: str
) -> None:
    world.serving()

    answer = signed_in(world.lead).post(_TAB, {**_NEW, **changed})

    assert answer.status_code == 422
    assert message in page(answer).text
    assert CallerKey.objects.count() == 0


def test_rest_gives_a_key_once(world: World) -> None:
    deployment = keyed(world)
    client = APIClient()
    client.force_authenticate(world.lead)
    address = f"/api/v1/deployments/{deployment.pk}/callers"

    made = client.post(address, {"caller": "billing", "contact": "ana", "days": 30}, format="json")
    world.work()
    row = CallerKey.objects.get()
    held = at_gateway(world)
    listed = client.get(address).json()
    rotated = client.post(f"{address}/{row.pk}/rotate", {"overlap_hours": 0}, format="json")
    revoked = client.post(f"{address}/{rotated.json()['id']}/revoke", format="json")
    world.work()

    assert (made.status_code, rotated.status_code, revoked.status_code) == (201, 201, 200)
    assert held == {f"billing.{row.pk}": made.json()["key"]}
    assert made["Cache-Control"] == "no-store"
    assert "key" not in listed[0]
    known = [name for name in made.json() if name != "key" and "gateway" not in name]
    assert {name: listed[0][name] for name in known} == {name: made.json()[name] for name in known}
    assert (listed[0]["caller"], listed[0]["state"], listed[0]["contact"]) == (
        "billing",
        "active",
        "ana",
    )
    assert revoked.json()["state"] == "revoked"
    assert "key" not in revoked.json()
    assert at_gateway(world) == {}


def test_try_it_asks_a_pod_where_the_gateway_wants_a_key(world: World) -> None:
    keyed(world)

    shown = page(signed_in(world.member).get(_TRY))

    assert "Sent directly to a pod, bypassing the gateway" in shown.text
    assert '-H "x-api-key: $KEY"' in shown.text


def test_who_may_create_keys_gets_one_for_trying_with_one_click(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, Any, Mapping[str, str]]] = []

    def answer(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        calls.append((url, json.loads(body), headers))
        return Answer(200, b"{}", is_cut=False, milliseconds=1)

    monkeypatch.setattr(inference, "post", answer)
    keyed(world)
    client = signed_in(world.lead)
    assert "Create my key" in page(client.get(_TRY)).buttons

    body = '{"inputs": []}'
    made = client.post(f"{_TRY}/key", {"body": body}, **HTMX, HTTP_HX_TARGET="request-key")
    world.work()

    row = CallerKey.objects.select_related("consumer").get()
    shown, plain = page(made), at_gateway(world)[f"try-lead.{row.pk}"]
    assert (row.consumer.kind, row.ends_at - row.created_at) == ("person", timedelta(days=1))
    assert made["Cache-Control"] == "no-store"
    assert shown.part("try-key").text == plain
    assert shown.part("curl-text").verbatim.startswith(f"export KEY={plain}\ncurl --json '{body}'")
    assert f'headers={{"x-api-key": "{plain}"}}' in shown.part("python-text").verbatim
    assert f'"x-api-key": "{plain}" }},' in shown.part("javascript-text").verbatim
    assert shown.part("request-way").text.startswith("Sent through the gateway")
    assert plain not in client.get(_TRY).content.decode()

    sent = client.post(_TRY, {"source": "json", "body": body, "key": plain})
    ((url, sent_body, headers),) = calls
    assert (sent.status_code, sent_body) == (200, {"inputs": []})
    assert url == "http://gateway.example/vision/detector/v2/models/detector/infer"
    assert headers["x-api-key"] == plain
    assert sent["Cache-Control"] == "no-store"

    form = next(form for form in shown.all("form") if "Revoke" in form.buttons)
    client.post(form.attributes["action"], {"key_id": str(row.pk), "action": "revoke"})
    world.work()
    assert at_gateway(world) == {}


def test_who_may_create_no_key_reads_who_does(world: World) -> None:
    keyed(world)
    client = signed_in(world.member)

    shown = page(client.get(_TRY))
    refused = client.post(f"{_TRY}/key")

    assert "Create my key" not in shown.buttons
    assert (
        "lead, lead2 can create one for you in the Callers tab." in shown.part("request-key").text
    )
    assert refused.status_code == 403
    assert not CallerKey.objects.exists()


def test_an_open_address_needs_no_key_to_be_tried(world: World) -> None:
    world.serving()
    client = signed_in(world.lead)

    shown = page(client.get(_TRY))
    refused = client.post(f"{_TRY}/key")

    assert "Your key" not in shown.text
    assert refused.status_code == 409
    assert not CallerKey.objects.exists()


def test_the_platforms_maximum_bounds_every_way_to_a_key(world: World, settings: Any) -> None:
    settings.SLIPWAY_TOKEN_MAX_DAYS = 20
    deployment = keyed(world)
    client, api = signed_in(world.lead), APIClient()
    api.force_authenticate(world.lead)
    address = f"/api/v1/deployments/{deployment.pk}/callers"

    by_default = make(world, deployment).row
    on_page = client.post(_TAB, {**_NEW, "days": "21"})
    by_rest = api.post(address, {"caller": "x", "contact": "ana", "days": 21}, format="json")
    rotated = api.post(f"{address}/{by_default.pk}/rotate", {"days": 21}, format="json")

    assert by_default.ends_at - by_default.created_at == timedelta(days=20)
    assert [answer.status_code for answer in (on_page, by_rest, rotated)] == [422, 422, 422]
    assert "1 to 20 days" in page(on_page).text
    assert by_rest.json()["errors"] == rotated.json()["errors"]
    assert by_rest.json()["errors"] == [{"field": "days", "detail": "1 to 20"}]
    assert list(CallerKey.objects.all()) == [by_default]
