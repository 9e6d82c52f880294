"""The authenticator app: what signing in takes with it, and what nobody gets around."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from portal.accounts.local import passwords, second_factor, totp
from portal.accounts.local.models import Authenticator, RecoveryCode
from portal.accounts.models import Role, User
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.accounts import events_besides_sign_ins, make_membership, make_user
from tests.page import page

pytestmark = pytest.mark.django_db
PASSWORD = "two brown otters swim"


@pytest.fixture(autouse=True)
def ana() -> User:
    cache.clear()
    return User.objects.create_user("ana", "ana@example.org", PASSWORD)


def code(key: str, *, seconds: int = 0) -> str:
    return totp.code_at(key, int(clock.now().timestamp()) + seconds)


@pytest.fixture
def key(ana: User) -> str:
    """Of an app that is on; its codes before now are used up."""
    second_factor.start(actor=ana)
    key = second_factor.pending_key(ana)
    second_factor.confirm(actor=ana, code=code(key, seconds=-30))
    return key


def first_step(next_path: str = "") -> Client:
    browser = Client()
    answer = browser.post("/sign-in", {"username": "ana", "password": PASSWORD, "next": next_path})
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/code")
    return browser


def is_signed_in(browser: Client) -> bool:
    return browser.get("/session").status_code == 200


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")],
)
def test_codes_are_those_of_rfc_6238(seconds: int, expected: str) -> None:
    """Appendix B has them with eight digits."""
    assert totp.code_at("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", seconds) == expected


def test_setting_up_shows_the_key_until_a_code_confirms_it(ana: User) -> None:
    browser = Client()
    browser.post("/sign-in", {"username": "ana", "password": PASSWORD})
    browser.post("/account/second-factor/start")
    shown = browser.get("/account/second-factor")
    key = page(shown).part("totp-key").text.replace(" ", "")
    wrong = browser.post("/account/second-factor", {"code": "000000"})

    made = browser.post("/account/second-factor", {"code": code(key)})

    codes = page(made).part("recovery-codes").text.split()
    assert "data:image/svg+xml;base64," in shown.content.decode()
    assert wrong.status_code == 422
    assert (len(codes), len(set(codes))) == (10, 10)
    assert all(re.fullmatch(r"[a-z2-9]{4}(-[a-z2-9]{4}){2}", one) for one in codes)
    later = browser.get("/account/second-factor").content.decode()
    assert not any(secret in later for secret in (key, codes[0]))
    assert key not in Authenticator.objects.get().sealed_key
    assert codes[0].replace("-", "") not in set(
        RecoveryCode.objects.values_list("digest", flat=True)
    )
    row = events_besides_sign_ins().get()
    assert (row.action, row.actor_name, row.after) == ("second_factor.added", "ana", {})


def test_an_app_that_was_not_confirmed_counts_for_nothing(ana: User, client: Client) -> None:
    second_factor.start(actor=ana)

    client.post("/sign-in", {"username": "ana", "password": PASSWORD})

    assert is_signed_in(client)


def test_signing_in_takes_both_and_leads_where_one_wanted_to_go(key: str) -> None:
    browser = first_step("/approvals")
    assert not is_signed_in(browser)
    assert browser.get("/approvals").status_code == 302
    wrong = browser.post("/sign-in/code", {"code": "000000"})

    answer = browser.post("/sign-in/code", {"code": f" {code(key)[:3]} {code(key)[3:]}"})

    assert wrong.status_code == 422
    assert (answer.status_code, answer["Location"]) == (302, "/approvals")
    assert is_signed_in(browser)
    assert "with password and code" in page(browser.get("/account/security")).text


def test_a_code_is_accepted_once(key: str) -> None:
    first, second = first_step(), first_step()
    now = code(key)

    first.post("/sign-in/code", {"code": now})
    again = second.post("/sign-in/code", {"code": now})

    assert (is_signed_in(first), is_signed_in(second), again.status_code) == (True, False, 422)


def test_of_two_sign_ins_with_one_code_the_first_wins(
    ana: User, key: str, monkeypatch: Any
) -> None:
    """The other one is accepted after this one has read the row."""
    real = second_factor._step_of
    digits = code(key)

    def late(row: Authenticator, text: str) -> int | None:
        step = real(row, text)
        Authenticator.objects.update(last_step=step)
        return step

    monkeypatch.setattr(second_factor, "_step_of", late)

    with pytest.raises(Invalid):
        second_factor.require(ana, digits, address="10.0.0.7")


def test_codes_of_a_minute_ago_and_in_a_minute_are_not_valid(ana: User, key: str) -> None:
    for seconds in (-90, 90):
        with pytest.raises(Invalid):
            second_factor.require(ana, code(key, seconds=seconds), address="")
    second_factor.require(ana, code(key, seconds=30), address="")


def test_a_recovery_code_signs_in_once(ana: User, key: str) -> None:
    recovery = second_factor.make_codes(actor=ana)[0]
    first, second = first_step(), first_step()

    first.post("/sign-in/code", {"code": recovery.upper()})
    second.post("/sign-in/code", {"code": recovery})

    assert (is_signed_in(first), is_signed_in(second)) == (True, False)
    row = AuditEvent.objects.get(action="second_factor.code_used")
    assert (row.actor_name, row.after) == ("ana", {"codes_left": 9})


def test_guessing_is_cut_off(key: str) -> None:
    browser = first_step()
    for _ in range(second_factor.OF_PERSON.max_count):
        assert browser.post("/sign-in/code", {"code": "000000"}).status_code == 422

    answer = browser.post("/sign-in/code", {"code": code(key)})

    assert answer.status_code == 429
    assert not is_signed_in(browser)


def test_the_first_step_ends_after_ten_minutes_and_with_the_password(ana: User, key: str) -> None:
    slow, changed = first_step(), first_step()
    with time_machine.travel(clock.now() + timedelta(minutes=11)):
        assert slow.post("/sign-in/code", {"code": code(key)})["Location"] == "/sign-in"
    ana.set_password("another one, longer")
    ana.save()

    assert changed.post("/sign-in/code", {"code": code(key)})["Location"] == "/sign-in"
    assert not is_signed_in(slow)
    assert not is_signed_in(changed)
    assert Client().get("/sign-in/code")["Location"] == "/sign-in"


def test_a_new_password_by_link_does_not_get_around_the_app(key: str, client: Client) -> None:
    root = make_user("root", is_platform_admin=True)
    client.get(passwords.make_link(actor=root, username="ana").path)
    client.post("/password-link", {"password": "a" * 8 + "otters", "repeated": "a" * 8 + "otters"})

    answer = client.post("/sign-in", {"username": "ana", "password": "a" * 8 + "otters"})

    assert answer["Location"] == "/sign-in/code"


def test_removing_it_takes_the_password(ana: User, key: str) -> None:
    browser = Client()
    browser.force_login(ana)
    wrong = browser.post("/account/second-factor/remove", {"password": "wrong"})
    also = browser.post("/account/second-factor/codes", {"password": "wrong"})
    assert (wrong.status_code, also.status_code, second_factor.is_on(ana)) == (422, 422, True)

    browser.post("/account/second-factor/remove", {"password": PASSWORD})

    assert not second_factor.is_on(ana)
    assert RecoveryCode.objects.count() == 0
    assert AuditEvent.objects.filter(action="second_factor.removed").count() == 1


def test_a_platform_admin_removes_it_and_nobody_else(ana: User, key: str) -> None:
    root = make_user("root", is_platform_admin=True)
    with pytest.raises(Forbidden):
        second_factor.remove_factors(actor=ana, username="root")
    browser = Client()
    browser.force_login(root)

    browser.post("/admin/people/ana/second-factor/remove")

    assert not second_factor.is_on(ana)
    row = AuditEvent.objects.get(action="second_factor.removed_by_admin")
    assert (row.actor_name, row.object_label) == ("root", "ana")
    with pytest.raises(Conflict):
        second_factor.remove_factors(actor=root, username="ana")


def test_a_second_app_does_not_replace_the_first(ana: User, key: str) -> None:
    with pytest.raises(Conflict):
        second_factor.start(actor=ana)

    assert second_factor.is_on(ana)


def test_leads_who_must_have_one_reach_nothing_else(ana: User, settings: Any) -> None:
    settings.SLIPWAY_REQUIRE_SECOND_FACTOR = True
    membership = make_membership(user=ana, role=Role.MEMBER)
    browser = Client()
    browser.post("/sign-in", {"username": "ana", "password": PASSWORD})
    assert browser.get("/approvals").status_code == 200

    type(membership).objects.update(role=Role.LEAD)

    assert browser.get("/approvals")["Location"] == "/account/second-factor"
    assert browser.get("/account/tokens")["Location"] == "/account/second-factor"
    assert browser.post("/account/tokens", {"name": "x", "days": "7"}).status_code == 303
    refused = browser.get("/api/v1/me")
    assert (refused.status_code, refused.json()["code"]) == (403, "second_factor_missing")
    assert "This platform requires" in page(browser.get("/account/second-factor")).text
    browser.post("/account/second-factor/start")
    key = second_factor.pending_key(ana)
    browser.post("/account/second-factor", {"code": code(key)})
    assert browser.get("/approvals").status_code == 200
    assert browser.get("/api/v1/me").status_code == 200


def test_of_who_signs_in_with_a_provider_none_is_required(ana: User, settings: Any) -> None:
    settings.SLIPWAY_REQUIRE_SECOND_FACTOR = True
    make_membership(user=ana, role=Role.LEAD)
    ana.set_unusable_password()
    ana.save()
    browser = Client()
    browser.force_login(ana)

    assert browser.get("/approvals").status_code == 200
    with pytest.raises(Conflict):
        second_factor.start(actor=ana)
