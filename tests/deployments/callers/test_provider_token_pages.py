"""Token issuers and callers with tokens on the pages: registered, added, shown with their claim, moved by canary."""

from __future__ import annotations

from typing import Any

from deployments.models import CallerKey, ChangeRequest, Deployment, TokenIssuer
from tests.deployments.callers.test_canary_form import browser, choices, typed
from tests.deployments.callers.test_keys import make
from tests.deployments.callers.test_provider_tokens import let_in, offer, register, with_tokens
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_TAB = "/vision/deployments/detector/callers"
_CANARY = "/vision/deployments/detector/canary"
_ADMIN = "/admin/token-issuers"
_NEW = {"name": "billing", "kind": "service", "contact": "ana@example.org", "days": "90"}
_ISSUER: dict[str, Any] = {
    "name": "acme",
    "cluster": "",
    "url": "https://login.acme.example/",
    "jwks_url": "https://login.acme.example/jwks",
    "audiences": "models, inference",
    "claim": "client_id",
    "required": "groups[]=models\r\ngroups[]=staff\r\nazp=gateway",
}


def test_an_admin_registers_an_issuer_and_removes_it(world: World) -> None:
    client = browser(world.admin)

    made = client.post(_ADMIN, _ISSUER)
    row = TokenIssuer.objects.get()
    shown = page(client.get(_ADMIN)).text
    removed = client.post(f"{_ADMIN}/{row.pk}/remove")

    assert (made.status_code, removed.status_code) == (302, 302)
    assert row.audiences == ["models", "inference"]
    assert row.required_claims == [
        {"claim": "groups", "values": ["models", "staff"], "is_list": True},
        {"claim": "azp", "values": ["gateway"], "is_list": False},
    ]
    assert "client_id names the caller" in shown
    assert "groups has models or staff" in shown
    assert "no deployment" in shown
    assert "No issuers yet" in page(client.get(_ADMIN)).text


def test_what_the_form_of_an_issuer_refuses_it_explains(world: World) -> None:
    client = browser(world.admin)

    no_pair = client.post(_ADMIN, {**_ISSUER, "required": "groups"})
    plain = client.post(_ADMIN, {**_ISSUER, "jwks_url": "http://login.acme.example/jwks"})

    assert (no_pair.status_code, plain.status_code) == (422, 422)
    assert "Write claim=value, not groups." in page(no_pair).text
    assert "an https URL" in page(plain).text
    assert TokenIssuer.objects.count() == 0


def test_a_lead_adds_renews_and_revokes_a_caller_without_a_key(world: World) -> None:
    with_tokens(world)
    client = browser(world.lead)
    before = page(client.get(_TAB)).text

    body = {**_NEW, "token_issuer": "acme", "claim_value": "svc-billing"}
    added = client.post(_TAB, body)
    row = CallerKey.objects.get()
    empty = client.post(_TAB, {**body, "claim_value": ""})
    shown = page(client.get(_TAB)).text
    renewed = client.post(_TAB, {"action": "rotate", "key_id": str(row.pk), "days": "10"})
    second = CallerKey.objects.get(ended_at=None)
    revoked = client.post(_TAB, {"action": "revoke", "key_id": str(second.pk)})

    assert "Callers send a token of acme" in before
    assert "Nobody can call this deployment yet." in before
    assert (added.status_code, empty.status_code) == (200, 422)
    assert "billing may call" in page(added).text
    assert "sub: svc-billing" in page(added).text
    assert "Copy the key" not in page(added).text
    assert "sub in tokens of acme" in shown
    assert "Renew" in shown
    assert renewed.status_code == 200
    assert second.claim_value == "svc-billing"
    assert (second.ends_at - second.created_at).days == 10
    assert revoked.status_code == 302
    assert not CallerKey.objects.filter(ended_at=None).exists()


def test_what_does_not_open_the_address_says_so(world: World) -> None:
    deployment = with_tokens(world)
    make(world, deployment, "old")
    let_in(world, deployment, "svc-billing")

    shown = page(browser(world.member).get(_TAB)).text

    assert shown.count("not used here: callers send tokens of acme") == 1
    assert "Keys do not work at this address" in shown


def test_a_canary_moves_an_address_from_keys_to_tokens(world: World) -> None:
    offer(world)
    deployment = world.serving()
    register(world)

    offered = choices(world)
    sent = browser(world.member).post(_CANARY, typed(world, access="jwt:acme"))

    change = ChangeRequest.objects.latest("pk")
    assert ("jwt:acme", "Callers with a token of acme") in offered
    assert sent.status_code == 302
    assert change.revision is not None
    assert change.revision.spec["network"]["access"] == "jwt"
    assert change.revision.spec["network"]["token_issuer"] == "acme"
    assert Deployment.objects.get(pk=deployment.pk).stable_revision != change.revision
