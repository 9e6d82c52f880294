"""Confirming with the provider that it is still the same person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.oidc import confirmation
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.providers import Provider
from portal.core import clock
from tests.accounts import make_user
from tests.page import page
from tests.portal.accounts.oidc.conftest import Server, SignIn

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(client: Client, server: Server, sign_in: SignIn, settings: Any) -> User:
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    server.set_claims("00u1", preferred_username="ana")
    server.set_claims("00u2", preferred_username="ben")
    sign_in("00u1")
    return User.objects.get()


def confirm(client: Client, server: Server, subject: str) -> Any:
    start = client.get("/sign-in/with/lab", {"confirm": "1", "next": "/approvals"})
    return client.get(server.consent(start["Location"], subject))


def test_the_provider_signs_the_person_in_again(client: Client, ana: User) -> None:
    form = page(client.get("/confirm", {"next": "/approvals"}))

    address = form.link("Confirm with Lab")
    query = parse_qs(urlsplit(client.get(address)["Location"]).query)

    assert address == "/sign-in/with/lab?confirm=1&next=%2Fapprovals"
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"])


def test_the_session_goes_on_with_the_time_that_the_provider_said(
    client: Client, server: Server, ana: User
) -> None:
    store = client.session
    step_up.mark(store, None)
    store.save()

    answer = confirm(client, server, "00u1")

    at = step_up.time_of(client.session)
    assert (answer.status_code, answer["Location"]) == (302, "/approvals")
    assert at is not None
    assert clock.now() - at < timedelta(minutes=5)
    assert client.session["_auth_user_id"] == str(ana.pk)


def test_someone_else_confirms_nothing_and_gets_no_account(
    client: Client, server: Server, ana: User
) -> None:
    store = client.session
    step_up.mark(store, None)
    store.save()

    answer = confirm(client, server, "00u2")

    assert answer.status_code == 403
    assert "as someone other than ana" in page(answer).text
    assert step_up.time_of(client.session) is None
    assert not User.objects.filter(username="ben").exists()


def test_who_was_signed_out_meanwhile_is_refused(client: Client, server: Server, ana: User) -> None:
    start = client.get("/sign-in/with/lab", {"confirm": "1"})
    callback = server.consent(start["Location"], "00u1")
    client.force_login(make_user("eve"))
    moved = client.session
    client.post("/sign-out")

    answer = client.get(callback)

    assert answer.status_code == 403
    assert moved.session_key != client.session.session_key


@pytest.mark.parametrize("auth_time", [None, "1", True, 0, -5, 10**12])
def test_a_time_that_is_none_is_not_known(auth_time: Any) -> None:
    assert confirmation.read_sign_in_time({"auth_time": auth_time}) is None


def test_a_sign_in_of_before_confirms_nothing(ana: User, provider: Provider) -> None:
    fresh, old = (int(clock.now().timestamp()) - seconds for seconds in (60, 600))

    confirmation.check(provider, {"sub": "00u1", "auth_time": fresh}, user=ana)
    for claims in ({"sub": "00u1", "auth_time": old}, {"sub": "00u1"}):
        with pytest.raises(SignInRefused, match="did not ask you to sign in again"):
            confirmation.check(provider, claims, user=ana)
