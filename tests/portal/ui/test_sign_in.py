"""Signing in: throttled failures, a new session, no way out to other sites."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core import signing
from django.core.cache import cache
from django.test import Client, override_settings

from portal import breaker
from portal.accounts import sign_ins
from portal.accounts.models import User
from portal.core import clock

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"


@pytest.fixture(autouse=True)
def person() -> Iterator[User]:
    cache.clear()
    yield User.objects.create_user("ana", password=PASSWORD)
    # A test may have taken Valkey away.
    breaker.valkey.forget()
    cache.clear()


def sign_in(client: Client, password: str, *, username: str = "ana", **extra: str) -> Any:
    data = {"username": username, "password": password, "next": extra.pop("next", "")}
    return client.post("/sign-in", data, **extra)  # type: ignore[arg-type]  # headers as keywords


def fail(client: Client, times: int = sign_ins.OF_PAIR.max_count, **extra: str) -> None:
    for _ in range(times):
        assert sign_in(client, "wrong", **extra).status_code == 200


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every password that is hashed: this is what costs."""
    failures: list[str] = []
    real = PBKDF2PasswordHasher.encode

    def encode(self: Any, password: str, salt: str, iterations: int | None = None) -> str:
        failures.append(password)
        return str(real(self, password, salt, 1))

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", encode)
    return failures


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The time, at the beginning of a window; change it in place."""
    now = [datetime(2026, 3, 1, 12, 0, tzinfo=UTC)]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    return now


def spray(names: int, *, address: str = "10.0.0.9") -> list[int]:
    client = Client()
    return [
        sign_in(client, "wrong", username=f"name{n}", REMOTE_ADDR=address).status_code
        for n in range(names)
    ]


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"])
def test_spraying_many_names_from_one_address_is_cut_off_before_any_hash(
    at: list[datetime], hashes: list[str]
) -> None:
    assert spray(60) == [200] * 30 + [429] * 30
    assert len(hashes) == 30


def test_spraying_says_when_to_come_again(at: list[datetime]) -> None:
    at[0] += timedelta(minutes=5)
    spray(30)

    refused = sign_in(Client(), "wrong", username="one more", REMOTE_ADDR="10.0.0.9")

    assert (refused.status_code, refused["Retry-After"]) == (429, "600")
    assert "Try again in 10 minutes" in refused.content.decode()


def test_spraying_holds_up_neither_other_addresses_nor_the_next_window(at: list[datetime]) -> None:
    spray(40)

    assert sign_in(Client(), PASSWORD, REMOTE_ADDR="10.0.0.9").status_code == 429
    assert sign_in(Client(), PASSWORD, REMOTE_ADDR="10.0.0.8").status_code == 302
    at[0] += timedelta(minutes=15)
    assert sign_in(Client(), PASSWORD, REMOTE_ADDR="10.0.0.9").status_code == 302


def test_all_addresses_of_one_ipv6_network_are_one_client(at: list[datetime]) -> None:
    for n in range(30):
        spray(1, address=f"2001:db8::{n:x}")

    assert spray(1, address="2001:db8::ffff") == [429]
    assert spray(1, address="2001:db8:0:1::1") == [200]


def test_guessing_one_name_from_many_addresses_is_cut_off(at: list[datetime]) -> None:
    for n in range(sign_ins.OF_NAME.max_count):
        assert sign_in(Client(), "wrong", REMOTE_ADDR=f"10.1.0.{n}").status_code == 200

    assert sign_in(Client(), "wrong", REMOTE_ADDR="10.2.0.1").status_code == 429


def test_strangers_cannot_lock_out_a_browser_that_has_signed_in_before(
    at: list[datetime], client: Client
) -> None:
    assert sign_in(client, PASSWORD).status_code == 302
    client.post("/sign-out")
    for n in range(sign_ins.OF_NAME.max_count + 5):
        sign_in(Client(), "wrong", REMOTE_ADDR=f"10.1.0.{n}")
    spray(40, address="127.0.0.1")

    assert sign_in(Client(), PASSWORD).status_code == 429
    assert sign_in(client, PASSWORD).status_code == 302


def test_a_known_browser_guesses_no_more_than_others(at: list[datetime], client: Client) -> None:
    sign_in(client, PASSWORD)
    client.post("/sign-out")
    fail(client, sign_ins.OF_DEVICE.max_count)

    assert sign_in(client, PASSWORD).status_code == 429


def test_a_cookie_is_of_the_names_that_signed_in_with_it_and_cannot_be_made_up(
    at: list[datetime], client: Client
) -> None:
    User.objects.create_user("ben", password=PASSWORD)
    sign_in(client, PASSWORD)
    client.post("/sign-out")
    fail(Client(), username="ben")
    forged = Client()
    forged.cookies[sign_ins.COOKIE] = client.cookies[sign_ins.COOKIE].value[:-1] + "x"
    fail(Client())

    assert sign_in(client, PASSWORD, username="ben").status_code == 429
    assert sign_in(forged, PASSWORD).status_code == 429
    assert sign_in(client, PASSWORD).status_code == 302


def test_the_cookie_holds_no_name_and_no_script_reads_it(client: Client) -> None:
    sign_in(client, PASSWORD)

    cookie = client.cookies[sign_ins.COOKIE]

    assert "ana" not in signing.loads(cookie.value, salt="portal.accounts.sign_ins.device")
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_the_own_successes_of_an_address_are_not_counted(at: list[datetime]) -> None:
    for _ in range(40):
        assert sign_in(Client(), PASSWORD).status_code == 302


def test_a_password_is_checked_only_while_few_others_are(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins, "_WAIT_SECONDS", 0.0)
    with sign_ins.password_check_slot() as first, sign_ins.password_check_slot() as second:
        assert first
        assert second
        refused = sign_in(client, PASSWORD)

    assert (refused.status_code, refused["Retry-After"]) == (429, "10")
    assert sign_in(client, PASSWORD).status_code == 302


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


def test_a_successful_sign_in_begins_at_zero_again(at: list[datetime], client: Client) -> None:
    fail(client, sign_ins.OF_PAIR.max_count - 1)
    assert sign_in(client, PASSWORD).status_code == 302

    fail(Client(), sign_ins.OF_PAIR.max_count)


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


def test_using_a_session_does_not_make_it_last_longer(client: Client) -> None:
    sign_in(client, PASSWORD)
    ends = client.session.get_expiry_date()
    used = client.session
    used["team"] = "vision"
    used.save()

    assert client.session.get_expiry_date() == ends
    assert timedelta(hours=11) < ends - clock.now() <= timedelta(hours=12)
