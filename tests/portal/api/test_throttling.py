"""How many requests in a minute the API takes, of whom, and what it says when that is too many."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, override_settings
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal import breaker
from portal.accounts import tokens
from portal.api.openapi import schema_view
from portal.api.problems import CONTENT_TYPE
from portal.core import clock
from tests.accounts import make_user

pytestmark = pytest.mark.django_db
DOWN = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": "redis://127.0.0.1:1/0",
    }
}


@pytest.fixture(autouse=True)
def at(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[list[datetime]]:
    now = [datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    settings.SLIPWAY_API_REQUESTS_PER_MINUTE = 3
    settings.SLIPWAY_API_ANONYMOUS_PER_MINUTE = 2
    cache.clear()
    yield now
    # A test may have taken Valkey away.
    breaker.valkey.forget()
    cache.clear()


def send(token: str = "", path: str = "me", **extra: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().get(f"/api/v1/{path}", headers=headers, **extra)


def test_a_token_gets_a_retry_time(at: list[datetime]) -> None:
    token = tokens.create(actor=make_user(), name="loop", days=1).plain

    answers = [send(token) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    refused = answers[-1]
    assert (refused["Content-Type"], refused["Retry-After"]) == (CONTENT_TYPE, "40")
    assert refused.json()["code"] == "throttled"
    at[0] += timedelta(seconds=40)
    assert send(token).status_code == 200


@pytest.mark.parametrize("prefix", ["bearer", "BEARER ", "Bearer \t"])
def test_another_spelling_of_the_header_is_the_same_token(prefix: str) -> None:
    token = tokens.create(actor=make_user(), name="loop", days=1).plain
    for _ in range(3):
        send(token)

    refused = Client().get("/api/v1/me", headers={"Authorization": f"{prefix} {token}"})

    assert refused.status_code == 429
    assert refused.json()["detail"] == (
        "The token “loop” sent more than 3 requests in this minute. Expected available in 40 seconds."
    )


@pytest.mark.parametrize(("platform", "expected"), [(3, "2 requests"), (1, "1 request")])
def test_a_token_may_have_a_lower_limit_of_its_own(
    platform: int, expected: str, settings: Any
) -> None:
    token = tokens.create(actor=make_user(), name="slow", days=1, requests_per_minute=2).plain
    settings.SLIPWAY_API_REQUESTS_PER_MINUTE = platform

    answers = [send(token) for _ in range(3)]

    assert [answer.status_code for answer in answers].count(200) == int(expected[0])
    assert answers[-1].status_code == 429
    assert f"more than {expected} in" in answers[-1].json()["detail"]


def test_what_lacks_a_scope_is_counted_too() -> None:
    token = tokens.create(actor=make_user(), name="loop", days=1).plain
    headers = {"Authorization": f"Bearer {token}"}

    answers = [Client().post("/api/v1/teams", headers=headers) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [403, 403, 403, 429]
    assert answers[-1]["Retry-After"] == "40"


def test_another_token_of_the_same_person_is_not_held_up() -> None:
    user = make_user()
    loop, other = (tokens.create(actor=user, name=name, days=1).plain for name in "ab")
    for _ in range(4):
        send(loop)

    assert send(other).status_code == 200


def test_a_session_is_counted_by_its_person() -> None:
    client = Client()
    client.force_login(make_user())

    assert [client.get("/api/v1/me").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_refused_request_does_nothing() -> None:
    user = make_user()
    token = tokens.create(actor=user, name="loop", days=1).plain
    client = APIClient(headers={"Authorization": f"Bearer {token}"})
    for _ in range(3):
        client.get("/api/v1/me")

    answer = client.post("/api/v1/me/tokens", {"name": "more"}, format="json")

    assert answer.status_code == 429
    assert [row.name for row in tokens.list_tokens(user)] == ["loop"]


@pytest.mark.parametrize("path", ["me", "schema"])
def test_nobody_is_counted_by_address(path: str) -> None:
    statuses = [send(path=path).status_code for _ in range(3)]

    assert statuses == ([200, 200, 429] if path == "schema" else [401, 401, 429])
    assert send(path=path, REMOTE_ADDR="10.0.0.9").status_code == statuses[0]


def test_made_up_tokens_are_nobody() -> None:
    statuses = [send(f"slp_{number}") for number in range(3)]

    assert [answer.status_code for answer in statuses] == [401, 401, 429]
    assert statuses[-1]["Retry-After"] == "40"


def test_what_others_of_the_address_do_does_not_hold_up_a_token() -> None:
    token = tokens.create(actor=make_user(), name="a", days=1).plain
    for _ in range(5):
        send()

    assert send(token).status_code == 200


@override_settings(CACHES=DOWN)
def test_without_the_cache_the_api_answers() -> None:
    token = tokens.create(actor=make_user(), name="a", days=1).plain

    assert [send(token).status_code for _ in range(5)] == [200] * 5
    assert [send().status_code for _ in range(3)] == [401] * 3


def test_the_document_is_made_once_for_all_who_read_it(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.SLIPWAY_API_ANONYMOUS_PER_MINUTE = 100
    made = []
    real = SchemaGenerator.get_schema
    schema_view._rendered.cache_clear()

    def get_schema(self: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(1)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(SchemaGenerator, "get_schema", get_schema)

    first = send(path="schema")
    for accept in ("*/*", "application/vnd.oai.openapi", "application/yaml"):
        assert Client().get("/api/v1/schema", headers={"Accept": accept}).content == first.content
    as_json = Client().get("/api/v1/schema", headers={"Accept": "application/json"})

    assert len(made) == 2
    assert first.content.startswith(b"openapi: 3.")
    assert as_json.json()["info"]["title"] == "Slipway API"
    unchanged = Client().get("/api/v1/schema", headers={"If-None-Match": first["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
