"""Answers that a provider, or somebody in its place, should not be believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.test import Client

from portal.accounts.models import User
from portal.accounts.oidc.providers import Provider
from tests.accounts import make_user
from tests.page import page
from tests.portal.accounts.oidc.conftest import Server, SignIn
from tests.portal.accounts.oidc.rows import counts, who

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("mode", "status", "problem"),
    [
        ("expired", 403, "it has expired"),
        ("other-issuer", 403, "issued by another provider"),
        ("other-audience", 403, "issued for another application"),
        ("other-key", 403, "its signature is not valid"),
        ("no-keys", 503, "its keys cannot be read"),
    ],
)
def test_a_wrong_answer_of_the_provider_signs_nobody_in(
    client: Client, server: Server, sign_in: SignIn, mode: str, status: int, problem: str
) -> None:
    server.set_claims("00u1", preferred_username="ana")
    server.set_mode(mode)
    before = counts()

    answer = sign_in("00u1")

    assert (answer.status_code, who(client), counts()) == (status, None, before)
    assert problem in answer.content.decode()


@pytest.mark.parametrize("mode", ["discovery-of-another", "no-endpoints", "page"])
def test_a_discovery_document_that_cannot_be_used_begins_nothing(
    client: Client, server: Server, provider: Provider, mode: str
) -> None:
    server.set_mode(mode)

    answer = client.get("/sign-in/with/lab")

    assert answer.status_code == 503
    assert "Lab cannot be used now" in answer.content.decode()


def test_a_provider_that_is_down_is_a_page_before_and_after(
    client: Client, server: Server, provider: Provider, settings: Any
) -> None:
    server.set_claims("00u1", preferred_username="ana")
    start = client.get("/sign-in/with/lab")
    back = server.consent(start["Location"], "00u1")
    settings.SLIPWAY_OIDC = (replace(provider, issuer="http://127.0.0.1:1"),)

    assert client.get("/sign-in/with/lab").status_code == 503
    assert client.get(back).status_code == 503
    assert (who(client), User.objects.count()) == (None, 0)


def test_an_answer_is_taken_once_and_in_the_browser_that_began(
    client: Client, server: Server, provider: Provider
) -> None:
    server.set_claims("00u1", preferred_username="ana")
    start = client.get("/sign-in/with/lab")
    back = server.consent(start["Location"], "00u1")
    other = Client()

    assert other.get(back).status_code == 403  # login CSRF: the attacker's own answer
    assert who(other) is None
    assert client.get(back).status_code == 302
    client.post("/sign-out")
    again = client.get(back)

    assert again.status_code == 403
    assert "completed already" in again.content.decode()
    assert who(client) is None


def test_the_request_carries_pkce_and_a_nonce_and_nothing_that_the_link_adds(
    client: Client, server: Server, provider: Provider
) -> None:
    start = client.get(
        "/sign-in/with/lab?auth_params=nonce%3Dx&scope=admin&process=connect&next=//evil.example"
    )

    query = parse_qs(urlsplit(start["Location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["nonce"][0]) == 32
    assert sorted(query["scope"][0].split()) == ["email", "openid", "profile"]
    assert query["redirect_uri"] == ["http://testserver/sign-in/with/lab/callback"]
    assert query["response_type"] == ["code"]


@pytest.mark.parametrize("name", ["nonce", "code_challenge"])
def test_a_code_of_another_request_is_refused(
    client: Client, server: Server, provider: Provider, name: str
) -> None:
    """Code injection: the attacker's own code, obtained with another nonce or another verifier."""
    server.set_claims("00u1", preferred_username="eve")
    address = httpx.URL(client.get("/sign-in/with/lab")["Location"])
    changed = str(address.copy_set_param(name, "A" * 43))

    answer = client.get(server.consent(changed, "00u1"))

    assert (answer.status_code, who(client), User.objects.count()) == (403, None, 0)


@pytest.mark.parametrize(
    ("error", "problem"),
    [("access_denied", "you canceled"), ("server_error", "reported an error")],
)
def test_what_the_provider_refuses_is_said(
    client: Client, provider: Provider, error: str, problem: str
) -> None:
    start = client.get("/sign-in/with/lab")
    (state,) = parse_qs(urlsplit(start["Location"]).query)["state"]

    answer = client.get("/sign-in/with/lab/callback", {"error": error, "state": state})

    assert answer.status_code == 403
    assert problem in answer.content.decode()


def test_signing_in_starts_a_new_session_and_ends_that_of_another_person(
    client: Client, server: Server, sign_in: SignIn
) -> None:
    client.force_login(make_user("ben"))
    old = client.session.session_key
    server.set_claims("00u1", preferred_username="ana")

    sign_in("00u1")

    assert who(client) == "ana"
    assert client.session.session_key != old
    ends = client.session.get_expiry_date()
    used = client.session
    used["team"] = "vision"
    used.save()
    assert client.session.get_expiry_date() == ends


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "https://evil.example", "javascript:alert(1)"]
)
def test_nobody_is_led_to_another_site(server: Server, sign_in: SignIn, path: str) -> None:
    server.set_claims("00u1", preferred_username="ana")

    assert sign_in("00u1", next_path=path)["Location"] == "/"


def test_the_sign_in_page_leads_to_the_provider_and_back_to_the_page(
    client: Client, provider: Provider
) -> None:
    shown = page(client.get("/sign-in?next=/models%3Fq=a%26b"))

    assert shown.link("Continue with Lab") == "/sign-in/with/lab?next=%2Fmodels%3Fq%3Da%26b"


def test_of_allauth_no_page_has_an_address(client: Client) -> None:
    for path in ("accounts/login/", "accounts/", "accounts/signup/", "accounts/social/signup/"):
        assert client.get(f"/{path}").status_code == 404
    assert client.get("/sign-in/with/nobody").status_code == 404
    assert client.get("/sign-in/with/nobody/callback?state=x&code=y").status_code == 404


def test_no_log_has_a_code_or_a_secret(
    server: Server, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.set_claims("00u1", preferred_username="ana")
    server.set_mode("expired")

    sign_in("00u1")

    assert "an ID token of lab was refused" in caplog.text
    assert "not a secret" not in caplog.text
    assert "eyJ" not in caplog.text
    assert "code=" not in caplog.text
