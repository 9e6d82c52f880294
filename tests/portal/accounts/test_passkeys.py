"""Passkeys as a second factor and for confirmations: what counts, and what nobody gets around."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from portal.accounts.local import passkeys, second_factor
from portal.accounts.local.models import Passkey, RecoveryCode
from portal.accounts.models import Role, User
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, NotFound
from tests.accounts import make_membership, make_team, make_user
from tests.page import page
from tests.portal.accounts.soft_authenticator import SoftAuthenticator

pytestmark = pytest.mark.django_db
PASSWORD = "two brown otters swim"
PAGE = "/account/second-factor/passkeys"


@pytest.fixture(autouse=True)
def ana() -> User:
    cache.clear()
    return User.objects.create_user("ana", "ana@example.org", PASSWORD)


def sign_in_with_password() -> Client:
    browser = Client()
    browser.post("/sign-in", {"username": "ana", "password": PASSWORD})
    return browser


def is_signed_in(browser: Client) -> bool:
    return browser.get("/session").status_code == 200


def add(browser: Client, key: SoftAuthenticator, name: str = "laptop", **changed: str) -> Any:
    options = browser.post(f"{PAGE}/begin").json()
    body = {"name": name, "password": PASSWORD, "passkey": key.create(options), **changed}
    return browser.post(PAGE, body)


def options_of(answer: Any) -> dict[str, Any]:
    text = re.search(r'data-options="([^"]*)"', answer.content.decode())
    assert text is not None
    options: dict[str, Any] = json.loads(html.unescape(text[1]))
    return options


@dataclass
class Registered:
    browser: Client
    key: SoftAuthenticator
    codes: list[str]


@pytest.fixture
def registered(ana: User) -> Registered:
    browser, key = sign_in_with_password(), SoftAuthenticator()
    shown = add(browser, key).content.decode()
    codes = re.findall(r"[a-z2-9]{4}-[a-z2-9]{4}-[a-z2-9]{4}", shown)
    return Registered(browser, key, codes)


def test_the_first_passkey_brings_recovery_codes(registered: Registered, ana: User) -> None:
    row = Passkey.objects.get()

    assert (row.user, row.name, row.sign_count, row.last_used_at) == (ana, "laptop", 0, None)
    assert len(set(registered.codes)) == 10
    assert second_factor.is_on(ana)
    event = AuditEvent.objects.get(action="passkey.added")
    assert (event.actor_name, event.after) == ("ana", {"name": "laptop"})
    second = add(registered.browser, SoftAuthenticator(), "key")
    assert second["Location"] == PAGE
    assert RecoveryCode.objects.count() == 10


def test_signing_in_takes_the_password_and_the_passkey(registered: Registered) -> None:
    browser = sign_in_with_password()
    assert not is_signed_in(browser)

    options = options_of(browser.get("/sign-in/code"))
    answer = browser.post("/sign-in/code", {"passkey": registered.key.get(options)})

    assert answer.status_code == 302
    assert is_signed_in(browser)
    assert options["userVerification"] == "required"
    assert Passkey.objects.get().sign_count == 1
    event = AuditEvent.objects.filter(action="session.began").latest("pk")
    assert event.after["method"] == "password and passkey"


def test_a_recovery_code_signs_in_without_the_passkey(registered: Registered) -> None:
    browser = sign_in_with_password()

    browser.post("/sign-in/code", {"code": registered.codes[0]})

    assert is_signed_in(browser)


def _refused(browser: Client, answer: str) -> None:
    response = browser.post("/sign-in/code", {"passkey": answer})
    assert response.status_code == 422
    assert "The passkey was not accepted." in page(response).text
    assert not is_signed_in(browser)


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "https://evil.example"},
        {"challenge": "AAAA"},
        {"type": "webauthn.create"},
    ],
    ids=["origin", "challenge", "type"],
)
def test_an_answer_for_something_else_proves_nothing(
    registered: Registered, changed: Mapping[str, str]
) -> None:
    browser = sign_in_with_password()
    options = options_of(browser.get("/sign-in/code"))

    _refused(browser, registered.key.get(options, changed))

    assert Passkey.objects.get().sign_count == 0
    event = AuditEvent.objects.filter(action="session.refused").latest("pk")
    assert event.after["reason"] == "passkey not accepted"


def test_presence_without_verification_is_not_enough(registered: Registered) -> None:
    browser = sign_in_with_password()
    options = options_of(browser.get("/sign-in/code"))

    _refused(browser, registered.key.get(options, flags=0x01))


def test_another_site_s_hash_is_refused(registered: Registered) -> None:
    browser = sign_in_with_password()
    options = options_of(browser.get("/sign-in/code"))

    _refused(browser, registered.key.get({**options, "rpId": "evil.example"}))


def test_somebody_else_s_passkey_is_refused(registered: Registered) -> None:
    other = User.objects.create_user("bo", "", PASSWORD)
    bo = Client()
    bo.force_login(other)
    key = SoftAuthenticator()
    add(bo, key)
    browser = sign_in_with_password()
    options = options_of(browser.get("/sign-in/code"))

    _refused(browser, key.get(options))


def test_an_answer_counts_once(registered: Registered) -> None:
    browser = sign_in_with_password()
    answer = registered.key.get(options_of(browser.get("/sign-in/code")))
    browser.post("/sign-in/code", {"passkey": answer})
    assert is_signed_in(browser)
    other = sign_in_with_password()
    other.get("/sign-in/code")

    _refused(other, answer)
    _refused(other, answer)


def test_a_copied_key_is_refused(registered: Registered) -> None:
    """Both copies sign, and the count of one of them does not rise."""
    copy = SoftAuthenticator(credential_id=registered.key.credential_id, key=registered.key.key)
    first, second = sign_in_with_password(), sign_in_with_password()
    answer = registered.key.get(options_of(first.get("/sign-in/code")))
    first.post("/sign-in/code", {"passkey": answer})
    assert is_signed_in(first)

    _refused(second, copy.get(options_of(second.get("/sign-in/code"))))


def test_a_challenge_ends(registered: Registered) -> None:
    browser = sign_in_with_password()
    answer = registered.key.get(options_of(browser.get("/sign-in/code")))

    with time_machine.travel(clock.now() + timedelta(minutes=5, seconds=1)):
        _refused(browser, answer)


@pytest.mark.parametrize("answer", ["x", "[]", "{}", '{"id": 7}', "9" * 20_001, '{"id": "AAAA"}'])
def test_an_unreadable_answer_is_refused(registered: Registered, answer: str) -> None:
    browser = sign_in_with_password()
    browser.get("/sign-in/code")

    _refused(browser, answer)


def test_adding_takes_the_password(ana: User) -> None:
    browser = sign_in_with_password()

    refused = add(browser, SoftAuthenticator(), password="wrong")

    assert refused.status_code == 422
    assert not Passkey.objects.exists()
    assert not second_factor.is_on(ana)


def test_adding_takes_a_challenge_of_this_session(ana: User) -> None:
    browser, key = sign_in_with_password(), SoftAuthenticator()
    options = sign_in_with_password().post(f"{PAGE}/begin").json()

    refused = browser.post(
        PAGE, {"name": "x", "password": PASSWORD, "passkey": key.create(options)}
    )

    assert refused.status_code == 422
    assert not Passkey.objects.exists()


def test_one_key_is_registered_once(registered: Registered) -> None:
    again = add(registered.browser, registered.key, "again")

    assert again.status_code == 409
    assert Passkey.objects.count() == 1


def test_removing_takes_the_password_and_ends_the_codes_with_the_last(
    registered: Registered, ana: User
) -> None:
    row = Passkey.objects.get()
    body = {"passkey": row.pk, "password": "wrong"}
    assert registered.browser.post(f"{PAGE}/remove", body).status_code == 422
    assert Passkey.objects.exists()

    registered.browser.post(f"{PAGE}/remove", {**body, "password": PASSWORD})

    assert not Passkey.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert is_signed_in(sign_in_with_password())
    with pytest.raises(NotFound):
        passkeys.remove(actor=ana, passkey_id=row.pk)


def test_nobody_removes_another_s(registered: Registered) -> None:
    with pytest.raises(NotFound):
        passkeys.remove(actor=make_user(username="bo"), passkey_id=Passkey.objects.get().pk)

    assert Passkey.objects.exists()


def test_an_admin_removes_all_when_they_are_lost(registered: Registered) -> None:
    admin = make_user(username="root")
    admin.is_platform_admin = True
    admin.save()

    second_factor.remove_factors(actor=admin, username="ana", reason="lost")

    assert not Passkey.objects.exists()
    event = AuditEvent.objects.get(action="second_factor.removed_by_admin")
    assert (event.before, event.reason) == ({"apps": 0, "passkeys": 1}, "lost")


def test_a_passkey_is_the_factor_that_the_platform_requires(
    registered: Registered, ana: User, settings: Any
) -> None:
    settings.SLIPWAY_REQUIRE_SECOND_FACTOR = True
    make_membership(user=ana, team=make_team(slug="vision"), role=Role.LEAD)

    assert registered.browser.get("/account/tokens").status_code == 200


def test_people_of_a_provider_have_theirs_there(ana: User) -> None:
    ana.set_unusable_password()
    ana.save()
    browser = Client()
    browser.force_login(ana)

    with pytest.raises(Conflict):
        passkeys.begin_adding(actor=ana, site=passkeys.Site("http://testserver"))
    assert "Your provider takes care of this" in page(browser.get(PAGE)).text


def test_a_passkey_confirms_before_a_decision(registered: Registered, settings: Any) -> None:
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    browser = registered.browser
    with time_machine.travel(clock.now() + timedelta(minutes=20)):
        shown = browser.get("/confirm", {"next": "/approvals"})
        options = options_of(shown)
        wrong = browser.post(
            "/confirm", {"passkey": registered.key.get(options, {"challenge": "AA"})}
        )
        assert wrong.status_code == 422
        options = options_of(wrong)
        right = {"passkey": registered.key.get(options), "next": "/approvals"}

        answer = browser.post("/confirm", right)

        assert (answer.status_code, answer["Location"]) == (302, "/approvals")
        confirmed = browser.session["authenticated_at"]
        assert confirmed == clock.now().isoformat() or confirmed > "2026"
    event = AuditEvent.objects.filter(action="session.began").latest("pk")
    assert event.after["method"] == "confirmation"


def test_a_password_does_not_confirm_where_there_is_a_passkey(
    registered: Registered, settings: Any
) -> None:
    settings.SLIPWAY_STEP_UP_MINUTES = 15

    answer = registered.browser.post("/confirm", {"answer": PASSWORD})

    assert answer.status_code == 422
