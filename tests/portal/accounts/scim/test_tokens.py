"""Provisioning tokens: created by platform admins, shown once, and good for SCIM alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts import tokens as api_tokens
from portal.accounts.local.step_up import StepUpRequired
from portal.accounts.models import ScimToken, User
from portal.accounts.scim import tokens
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Forbidden, NotFound
from tests.accounts import make_user
from tests.page import page
from tests.portal.accounts.scim import requests
from tests.portal.accounts.scim.conftest import Provisioner

PATHS = ("Users", "Users/x", "Groups", "Groups/x", "ServiceProviderConfig", "Schemas")


@pytest.mark.parametrize("path", [*PATHS, "ResourceTypes"])
@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_nobody_gets_in_without_a_token(provider: Any, path: str, method: str) -> None:
    answer = Provisioner("").send(method, path, requests.OKTA_USER)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="slipway scim"'
    assert not User.objects.exists()


def test_neither_a_session_nor_an_api_token_counts(admin: User) -> None:
    browser = Client()
    browser.force_login(admin)
    plain = api_tokens.create(actor=admin, name="notebook").plain

    assert Provisioner("", browser).send("get", "Users").status_code == 401
    assert Provisioner(plain).send("get", "Users").status_code == 401


def test_a_provisioning_token_opens_nothing_else(scim: Provisioner) -> None:
    answer = scim.client.get("/api/v1/me", headers={"Authorization": f"Bearer {scim.token}"})

    assert answer.status_code == 401


def test_revoked_and_expired_tokens_end(
    scim: Provisioner, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scim.send("get", "Users").status_code == 200
    other = Provisioner(tokens.create(actor=admin, provider_name="lab").plain)
    tokens.revoke(actor=admin, token_id=ScimToken.objects.earliest("pk").pk)

    assert scim.send("get", "Users").status_code == 401
    assert other.send("get", "Users").status_code == 200
    later = clock.now() + timedelta(days=tokens.DAYS, seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert other.send("get", "Users").status_code == 401


def test_only_the_hash_is_stored(scim: Provisioner) -> None:
    row = ScimToken.objects.get()

    assert scim.token not in str(ScimToken.objects.values().get())
    assert (scim.token[:12], len(row.digest)) == (row.prefix, 64)
    event = AuditEvent.objects.get(action="scim_token.created")
    assert scim.token not in str(event.after)


def test_a_token_of_a_provider_that_is_not_set_up_any_more_ends(
    scim: Provisioner, settings: Any
) -> None:
    settings.SLIPWAY_OIDC = ()

    assert scim.send("get", "Users").status_code == 401


def test_others_create_and_revoke_none(scim: Provisioner, settings: Any, admin: User) -> None:
    member = make_user(username="member")

    with pytest.raises(Forbidden):
        tokens.create(actor=member, provider_name="lab")
    with pytest.raises(Forbidden):
        tokens.revoke(actor=member, token_id=ScimToken.objects.get().pk)
    with pytest.raises(NotFound):
        tokens.create(actor=admin, provider_name="nobody")
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    with pytest.raises(StepUpRequired):
        tokens.create(actor=admin, provider_name="lab")
    assert ScimToken.objects.filter(revoked_at=None).count() == 1


def test_the_page_creates_shows_once_and_revokes(admin: User) -> None:
    browser = Client()
    browser.force_login(admin)

    made = page(browser.post("/admin/provisioning", {"provider": "lab"}))

    row = ScimToken.objects.get()
    assert "Copy the token of lab now" in made.text
    assert f"{row.prefix}" in made.text
    assert "http://testserver/scim/v2" in made.text
    again = page(browser.get("/admin/provisioning"))
    assert "Copy the token" not in again.text
    browser.post(f"/admin/provisioning/{row.pk}/revoke")
    row.refresh_from_db()
    assert row.revoked_at is not None


def test_what_the_endpoint_can_do_is_stated(scim: Provisioner) -> None:
    config = scim.send("get", "ServiceProviderConfig").json()
    kinds = scim.send("get", "ResourceTypes").json()
    schemas = scim.send("get", "Schemas").json()

    assert (config["patch"]["supported"], config["bulk"]["supported"]) == (True, False)
    assert [row["endpoint"] for row in kinds["Resources"]] == ["/Users", "/Groups"]
    assert [row["name"] for row in schemas["Resources"]] == ["User", "Group"]
    assert scim.send("delete", "Users").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_a_provider_s_journey_over_http(live_server: Any, scim: Provisioner) -> None:
    """As the provisioning service sends it: sockets, headers and bodies."""
    import httpx

    headers = {"Authorization": f"Bearer {scim.token}", "Content-Type": "application/scim+json"}
    with httpx.Client(
        base_url=f"{live_server.url}/scim/v2/", headers=headers, trust_env=False
    ) as http:
        found = http.get("Users", params={"filter": requests.OKTA_LOOKUP}).json()
        made = http.post("Users", json=requests.OKTA_USER)
        key = made.json()["id"]
        group = http.post("Groups", json=requests.OKTA_GROUP).json()["id"]
        added = http.patch(f"Groups/{group}", json=requests.okta_add(key))
        ended = http.patch(f"Users/{key}", json=requests.OKTA_DEACTIVATE)

    assert found["totalResults"] == 0
    assert made.headers["location"] == f"{live_server.url}/scim/v2/Users/{key}"
    assert [row["value"] for row in added.json()["members"]] == [key]
    assert ended.json()["active"] is False
    assert not User.objects.get(username="ana@example.org").is_active
