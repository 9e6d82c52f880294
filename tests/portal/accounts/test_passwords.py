"""Passwords: changed by their owner, or chosen anew by a link."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from portal.accounts import people, sign_ins
from portal.accounts.local import passwords
from portal.accounts.local.models import BrowserSession, PasswordLink
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden
from tests.accounts import events_besides_sign_ins, make_user
from tests.page import page

pytestmark = pytest.mark.django_db
OLD, NEW = "two brown otters swim", "three grey herons wade"


@pytest.fixture(autouse=True)
def ana() -> User:
    cache.clear()
    return User.objects.create_user("ana", "ana@example.org", OLD)


@pytest.fixture
def admin() -> User:
    return make_user("root", is_platform_admin=True)


def sign_in(password: str) -> Client:
    browser = Client()
    browser.post("/sign-in", {"username": "ana", "password": password})
    return browser


def is_signed_in(browser: Client) -> bool:
    return browser.get("/session").status_code == 200


def change(browser: Client, **more: str) -> Any:
    return browser.post(
        "/account/password", {"current": OLD, "password": NEW, "repeated": NEW, **more}
    )


def choose(browser: Client, **more: str) -> Any:
    return browser.post("/password-link", {"password": NEW, "repeated": NEW, **more})


def test_a_change_ends_the_other_sessions_and_not_this_one(ana: User, admin: User) -> None:
    browser, other = sign_in(OLD), sign_in(OLD)
    link = passwords.make_link(actor=admin, username="ana")

    answer = change(browser)

    assert (answer.status_code, answer["Location"]) == (302, "/account/security")
    assert (is_signed_in(browser), is_signed_in(other)) == (True, False)
    assert BrowserSession.objects.filter(user=ana).count() == 1
    assert (is_signed_in(sign_in(OLD)), is_signed_in(sign_in(NEW))) == (False, True)
    assert Client().get(link.path, follow=True).status_code == 410
    row = AuditEvent.objects.get(action="password.changed")
    assert (row.actor_name, row.object_label, row.after) == ("ana", "ana", {"sessions_ended": 1})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"current": "wrong"}, "This is not your password"),
        ({"password": "password1234", "repeated": "password1234"}, "too common"),
        ({"repeated": "other"}, "The passwords differ"),
        ({"password": "x" * 1025, "repeated": "x" * 1025}, "at most 1024"),
    ],
)
def test_a_refused_change_changes_nothing(ana: User, more: dict[str, str], says: str) -> None:
    browser, other = sign_in(OLD), sign_in(OLD)

    answer = change(browser, **more)

    assert answer.status_code == 422
    assert says in page(answer).text
    assert OLD not in answer.content.decode()
    assert is_signed_in(other)
    assert User.objects.get(pk=ana.pk).check_password(OLD)
    assert not events_besides_sign_ins().exists()


def test_guessing_the_current_password_is_limited_as_a_sign_in_is() -> None:
    browser = sign_in(OLD)
    for _ in range(sign_ins.OF_DEVICE.max_count):
        assert change(browser, current="wrong").status_code == 422

    answer = change(browser)

    assert answer.status_code == 429
    assert "Too many wrong passwords" in page(answer).text


def test_who_has_no_password_here_gets_none(admin: User, ana: User) -> None:
    ana.set_unusable_password()
    ana.save()
    browser = Client()
    browser.force_login(ana)

    assert "your company's provider" in page(browser.get("/account/security")).text
    assert change(browser).status_code == 409
    with pytest.raises(Conflict):
        passwords.make_link(actor=admin, username="ana")
    assert not events_besides_sign_ins().exists()


def test_a_link_of_an_admin_sets_the_password_once_and_signs_nobody_in(
    ana: User, admin: User, client: Client
) -> None:
    before, boss, other = sign_in(OLD), Client(), Client()
    boss.force_login(admin)
    made = page(boss.post("/admin/people/ana/password-link"))
    link = made.part("new-link").text
    for browser in (client, other):
        assert browser.get(link)["Location"] == "/password-link"

    answer = choose(client)

    assert (answer.status_code, answer["Location"]) == (302, "/sign-in")
    assert "Password changed. Sign in with it." in page(client.get("/sign-in")).text
    assert not is_signed_in(client)
    assert not is_signed_in(before)
    assert is_signed_in(sign_in(NEW))
    assert choose(other, password="four", repeated="four").status_code == 410
    assert list(events_besides_sign_ins().values_list("action", "actor_name", "reason")) == [
        ("password.link_made", "root", ""),
        ("password.reset", "ana", "link by root"),
    ]


def test_a_newer_link_replaces_the_older_and_a_day_ends_it(admin: User) -> None:
    first = passwords.make_link(actor=admin, username="ana")
    second = passwords.make_link(actor=admin, username="ana")

    assert "A newer link" in page(Client().get(first.path, follow=True)).text
    assert Client().get(second.path, follow=True).status_code == 200
    with time_machine.travel(clock.now() + timedelta(hours=25)):
        assert "has expired" in page(Client().get(second.path, follow=True)).text


def test_a_link_of_a_deactivated_person_is_dead(admin: User, client: Client) -> None:
    made = passwords.make_link(actor=admin, username="ana")
    client.get(made.path)
    people.deactivate(actor=admin, username="ana")
    people.reactivate(actor=admin, username="ana")

    assert choose(client).status_code == 410
    assert User.objects.get(username="ana").check_password(OLD)
    with pytest.raises(Forbidden):
        passwords.make_link(actor=User.objects.get(username="ana"), username="root")


def test_the_page_answers_the_same_whether_or_not_the_address_is_known(
    settings: Any, ana: User, admin: User
) -> None:
    settings.SLIPWAY_SMTP_URL = "smtp+plain://127.0.0.1:1"
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    by_admin = passwords.make_link(actor=admin, username="ana")
    make_user("gone", email="gone@example.org", is_active=False)
    unusable = make_user("oidc", email="oidc@example.org")
    unusable.set_unusable_password()
    unusable.save()

    texts = {
        page(Client().post("/sign-in/forgotten", {"email": email})).text
        for email in ("ANA@example.org", "no@example.org", "gone@example.org", "oidc@example.org")
    }

    assert len(texts) == 1
    (row,) = PasswordLink.objects.filter(created_by=None)
    assert (row.user, row.expires_at - row.created_at) == (ana, timedelta(hours=1))
    # Whoever asks cannot end the link that an admin made.
    assert Client().get(by_admin.path, follow=True).status_code == 200


def test_links_to_one_address_are_limited(settings: Any) -> None:
    settings.SLIPWAY_SMTP_URL = "smtp+plain://127.0.0.1:1"
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"

    for _ in range(passwords.OF_EMAIL.max_count + 2):
        Client().post("/sign-in/forgotten", {"email": "ana@example.org"})

    assert PasswordLink.objects.count() == passwords.OF_EMAIL.max_count


def test_without_mail_the_page_says_whom_to_ask(client: Client) -> None:
    assert "Ask a platform admin" in page(client.get("/sign-in/forgotten")).text

    client.post("/sign-in/forgotten", {"email": "ana@example.org"})

    assert not PasswordLink.objects.exists()
