"""Who a request of a browser is: read in one query with its session, and as of now in each request."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.db import connection
from django.test import Client

from portal.accounts.local.models import BrowserSession
from portal.accounts.models import Membership, Role, User
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"


@pytest.fixture
def ana() -> User:
    user = User.objects.create_user("ana", password=PASSWORD)
    make_membership(user=user, team=make_team(slug="vision"), role=Role.LEAD)
    make_membership(user=user, team=make_team(slug="speech"), role=Role.VIEWER)
    return user


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    assert name_of(client) == "ana"
    return client


def name_of(client: Client) -> str:
    """Empty for nobody, by REST and by a page alike."""
    rest, page = client.get("/api/v1/me"), client.get("/account/tokens")
    assert (rest.status_code, page.status_code) in {(200, 200), (401, 302)}
    return str(rest.json()["username"]) if rest.status_code == 200 else ""


def rail_of(client: Client) -> str:
    return str(client.get("/account/tokens").context["frame"].rail)


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    changed = User.objects.get(pk=user.pk)
    changed.set_password("another long password")
    changed.save()


def end_sessions(user: User) -> None:
    BrowserSession.objects.filter(user=user).delete()


def delete(user: User) -> None:
    User.objects.filter(pk=user.pk).delete()


@pytest.mark.parametrize("end", [deactivate, change_password, end_sessions, delete])
def test_the_next_request_after_it_is_nobodys(
    ana: User, browser: Client, end: Callable[[User], None]
) -> None:
    end(ana)

    assert name_of(browser) == ""


def test_a_session_of_before_a_changed_password_is_deleted(ana: User, browser: Client) -> None:
    change_password(ana)
    browser.get("/account/tokens")

    assert not BrowserSession.objects.filter(user=ana).exists()


def test_roles_count_in_the_next_request(ana: User, browser: Client) -> None:
    assert "/audit" in rail_of(browser)

    Membership.objects.filter(user=ana).update(role=Role.MEMBER)
    assert "/audit" not in rail_of(browser)

    User.objects.filter(pk=ana.pk).update(is_platform_admin=True)
    assert "/audit" in rail_of(browser)


def test_the_home_team_is_that_of_the_highest_role_in_the_next_request(
    ana: User, browser: Client
) -> None:
    assert browser.get("/account/tokens").context["frame"].team.slug == "vision"

    Membership.objects.filter(user=ana, team__slug="vision").update(role=Role.VIEWER)
    Membership.objects.filter(user=ana, team__slug="speech").update(role=Role.MEMBER)

    assert browser.get("/account/tokens").context["frame"].team.slug == "speech"


def test_a_new_secret_key_keeps_who_signed_in_with_the_one_before(
    ana: User, browser: Client, settings: Any
) -> None:
    (before,) = BrowserSession.objects.filter(user=ana)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the key that came after it"

    assert name_of(browser) == "ana"

    (after,) = BrowserSession.objects.filter(user=ana)
    assert after.session_key != before.session_key
    assert after.get_decoded()[HASH_SESSION_KEY] == ana.get_session_auth_hash()


def test_a_new_secret_key_without_the_one_before_signs_everybody_out(
    browser: Client, settings: Any
) -> None:
    settings.SECRET_KEY = "the key that came after it"

    assert name_of(browser) == ""


def test_a_row_that_names_another_person_than_its_session_signs_in_nobody_else(
    ana: User, browser: Client
) -> None:
    other = make_user(username="other")
    BrowserSession.objects.filter(user=ana).update(user=other)

    assert name_of(browser) == "ana"


def test_a_session_without_a_person_stays_nobodys() -> None:
    client = Client()
    store = import_module(django_settings.SESSION_ENGINE).SessionStore()
    store["team"] = "vision"
    store.create()
    client.cookies[django_settings.SESSION_COOKIE_NAME] = store.session_key

    assert name_of(client) == ""
    assert SESSION_KEY not in BrowserSession.objects.get().get_decoded()


def test_a_cookie_with_nul_is_no_session(client: Client) -> None:
    cookie = f'{django_settings.SESSION_COOKIE_NAME}="a\\000bcdefghijk"'

    assert client.get("/account/tokens", HTTP_COOKIE=cookie).status_code == 302
    assert client.get("/api/v1/me", HTTP_COOKIE=cookie).status_code == 401


@pytest.mark.parametrize("path", ["/account/tokens", "/api/v1/me"])
def test_session_and_person_are_one_query_and_roles_at_most_one_more(
    browser: Client, path: str
) -> None:
    statements: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        browser.get(path)

    of_person = [sql for sql in statements if '"accounts_user"."password"' in sql]
    of_session = [sql for sql in statements if '"accounts_browsersession"' in sql]
    of_roles = [sql for sql in statements if sql.startswith('SELECT "accounts_membership"."role"')]
    assert len(of_session) == 1
    assert of_person == of_session
    assert len(of_roles) <= 1
