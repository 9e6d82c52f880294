"""Signing in: throttled failures, a new session, no way out to other sites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, override_settings

from portal.accounts import sign_ins
from portal.accounts.models import User

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"


@pytest.fixture(autouse=True)
def person() -> Iterator[User]:
    cache.clear()
    yield User.objects.create_user("ana", password=PASSWORD)
    cache.clear()


def sign_in(client: Client, password: str, *, username: str = "ana", **extra: str) -> Any:
    data = {"username": username, "password": password, "next": extra.pop("next", "")}
    return client.post("/sign-in", data, **extra)  # type: ignore[arg-type]  # headers as keywords


def fail(client: Client, times: int = sign_ins.MOST_FAILURES, **extra: str) -> None:
    for _ in range(times):
        assert sign_in(client, "wrong", **extra).status_code == 200


def test_after_ten_failures_even_the_right_password_waits(client: Client) -> None:
    fail(client)

    refused = sign_in(client, PASSWORD)

    assert refused.status_code == 429
    assert "Too many failed sign-ins" in refused.content.decode()
    assert "_auth_user_id" not in client.session


def test_the_limit_is_of_one_name_in_any_spelling(client: Client) -> None:
    fail(client, username="ANA ")

    assert sign_in(client, PASSWORD).status_code == 429


def test_another_name_and_another_address_are_not_held_up(client: Client) -> None:
    User.objects.create_user("ben", password=PASSWORD)
    fail(client)

    assert sign_in(client, PASSWORD, username="ben").status_code == 302
    assert sign_in(Client(), PASSWORD, REMOTE_ADDR="10.0.0.9").status_code == 302


def test_a_successful_sign_in_begins_at_zero_again(client: Client) -> None:
    fail(client, sign_ins.MOST_FAILURES - 1)
    assert sign_in(client, PASSWORD).status_code == 302

    fail(Client(), sign_ins.MOST_FAILURES)


@override_settings(
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        }
    }
)
def test_without_the_cache_people_can_still_sign_in(client: Client) -> None:
    assert sign_in(client, "wrong").status_code == 200
    assert sign_in(client, PASSWORD).status_code == 302


def test_signing_in_gives_a_new_session(client: Client) -> None:
    session = client.session
    session["team"] = "planted"
    session.save()
    before = session.session_key

    sign_in(client, PASSWORD)

    assert client.session.session_key != before


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_signing_in_leads_nowhere_else(client: Client, target: str) -> None:
    assert sign_in(client, PASSWORD, next=target)["Location"] == "/"
