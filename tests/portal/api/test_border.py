"""What the API answers outside of its views: always a problem document."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from django.test import Client, RequestFactory
from rest_framework.test import APIClient

from portal.api import border, views
from portal.api.problems import CONTENT_TYPE
from tests.accounts import make_team, make_user
from tests.portal import api_document
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db


def lists_by_cursor() -> list[str]:
    document = api_document.read()
    return [
        path.removeprefix("/api/v1/")
        for path, item in document["paths"].items()
        if any(one["name"] == "cursor" for one in item.get("get", {}).get("parameters", []))
    ]


def signed_in() -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user())
    return client


@pytest.mark.parametrize(
    "path",
    [
        "nothing-here",
        "nothing-here/",
        "teams/",
        "me/tokens/not-a-number",
        "",
        "models/vision/a%00b",
        "deployments?search=a%00b",
        "deployments?cursor=a%00b",
    ],
)
def test_an_address_the_api_does_not_know_is_a_problem(path: str) -> None:
    answer = signed_in().get(f"/api/v1/{path}")

    assert answer.status_code == (400 if "?" in path else 404)
    assert answer["Content-Type"] == CONTENT_TYPE
    assert answer.json()["status"] == answer.status_code


def test_rest_without_tls_is_refused_and_not_redirected(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    client = signed_in()

    answer = client.get("/api/v1/teams", headers={"authorization": "Bearer slw_x"})

    assert (answer.status_code, answer.json()["code"]) == (403, "https_required")
    assert "revoke it" in answer.json()["detail"]
    assert client.get("/vision/models").status_code == 301
    assert client.get("/api/v1/teams", headers={"x-forwarded-proto": "https"}).status_code == 200


@pytest.mark.parametrize(
    "path", ["teams/birds/members/a%00b", "models/birds/a/aliases/a%00b", "me/tokens/99999999999"]
)
def test_names_that_nothing_can_have_are_not_found(path: str) -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user(is_platform_admin=True))
    make_team(slug="birds")

    answer = client.delete(f"/api/v1/{path}")

    assert (answer.status_code, answer["Content-Type"]) == (404, CONTENT_TYPE)


@pytest.mark.parametrize("method", ["delete", "put", "patch"])
def test_a_method_that_an_address_does_not_know_is_a_problem(method: str) -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user())

    answer = getattr(client, method)("/api/v1/me")

    assert answer.status_code == 405
    assert answer["Content-Type"] == CONTENT_TYPE
    assert answer.json()["code"] == "method_not_allowed"
    assert answer["Allow"] == "GET, HEAD, OPTIONS"


def test_a_refusal_does_not_say_how_to_sign_in() -> None:
    answer = Client().get("/api/v1/me")

    assert (answer.status_code, answer["Content-Type"]) == (401, CONTENT_TYPE)
    assert answer["WWW-Authenticate"] == 'Bearer realm="slipway"'


@pytest.mark.parametrize("header", ["Bearer slp_unknown", "bearer \xe9", "Bearer a b c", "Basic x"])
def test_a_token_that_is_none_is_refused(header: str) -> None:
    answer = Client().get("/api/v1/me", headers={"Authorization": header})

    assert (answer.status_code, answer["Content-Type"]) == (401, CONTENT_TYPE)


def test_a_session_without_the_csrf_token_is_refused_with_a_problem() -> None:
    answer = signed_in().post("/api/v1/me/tokens", {"name": "x"}, content_type="application/json")

    assert (answer.status_code, answer["Content-Type"]) == (403, CONTENT_TYPE)
    assert "CSRF" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 200_000, "application/json", 400),
        (b"[1]", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"name": "a\\u0000b"}', "application/json", 422),
        (b'{"name": "\\ud800"}', "application/json", 422),
        (b'{"name": "n", "days": 1e999}', "application/json", 422),
        (b'{"name": "n", "days": ' + b"9" * 5000 + b"}", "application/json", 422),
        (b"name=x", "application/x-www-form-urlencoded", 415),
        (b'{"name": "' + b"x" * 3_000_000 + b'"}', "application/json", 413),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("key", ["", "k"])
def test_a_body_that_cannot_be_read_is_a_problem(
    body: bytes, content_type: str, status: int, key: str
) -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user())
    headers = {"Idempotency-Key": key} if key else {}

    answer = client.generic(
        "POST", "/api/v1/me/tokens", body, content_type=content_type, headers=headers
    )

    assert (answer.status_code, answer["Content-Type"]) == (status, CONTENT_TYPE), answer.content


def test_a_value_that_nothing_can_hold_is_named_by_its_place() -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user())

    answer = client.generic(
        "POST", "/api/v1/me/tokens", b'{"a": [{"b": NaN}]}', content_type="application/json"
    )

    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"field": "a.0.b", "detail": "NaN and infinity cannot be used here."}
    ]


def cursor_of(text: str) -> str:
    return b64encode(text.encode()).decode()


CURSORS = [
    "cD0lMDA=",
    "x",
    "cD0",
    "%C3%A9",
    "=",
    "cD0x" * 400,
    *map(
        cursor_of,
        [
            "p=x",
            "p=-1",
            "p=9223372036854775808",
            "p=" + "9" * 30,
            "p=1&p=2",
            "p=%ED%A0%80",
            "p=1e3",
            "p=\u0663",
            "o=x",
            "o=-1",
            "o=1001",
            "o=" + "9" * 400,
            "r=2",
            "z=1",
            "just text",
            "p=2026-99-99",
        ],
    ),
]


def test_a_cursor_that_no_list_gave_out_is_refused_by_every_list(full_world: FullWorld) -> None:
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(full_world.world.admin)
    paths = [path.format(**full_world.names) for path in lists_by_cursor()]

    answers = {
        (path, cursor): client.get(f"/api/v1/{path}?cursor={cursor}")
        for path in paths
        for cursor in CURSORS
    }

    assert len(paths) > 8
    assert {sent: a.status_code for sent, a in answers.items() if a.status_code != 400} == {}
    assert {answer["Content-Type"] for answer in answers.values()} == {CONTENT_TYPE}
    fields = {error["field"] for answer in answers.values() for error in answer.json()["errors"]}
    assert fields == {"cursor"}


def test_a_list_knows_its_own_cursors(full_world: FullWorld) -> None:
    client: Any = APIClient()
    client.force_authenticate(full_world.world.admin)

    first = client.get("/api/v1/versions?limit=1").json()
    second = client.get(first["next"]).json()

    assert client.get(second["previous"]).json()["results"] == first["results"]
    assert first["results"] != second["results"]
    assert client.get("/api/v1/versions?limit=1&cursor=").json()["results"] == first["results"]


@pytest.mark.parametrize("path", ["costs.csv", "costs/ledger.csv"])
@pytest.mark.parametrize("accept", ["text/csv", "*/*", "application/json", "text/html,*/*;q=0.8"])
def test_a_csv_is_returned_on_request(path: str, accept: str) -> None:
    client: Any = APIClient()
    client.force_authenticate(make_user())

    answer = client.get(f"/api/v1/{path}", headers={"Accept": accept})

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")


def test_our_own_fault_is_a_problem_for_programs_and_a_page_for_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(views, "actor_of", fail)
    client = Client(raise_request_exception=False)
    client.force_login(make_user())

    answer = client.get("/api/v1/me")
    page = border.server_error(RequestFactory().get("/vision/models"))

    assert (answer.status_code, answer["Content-Type"]) == (500, CONTENT_TYPE)
    assert answer.json()["code"] == "internal_error"
    assert (page.status_code, page["Content-Type"]) == (500, "text/html; charset=utf-8")


def test_a_host_that_is_not_ours_is_a_problem() -> None:
    answer = Client().get("/api/v1/me", headers={"Host": "evil.example"})

    assert (answer.status_code, answer["Content-Type"]) == (400, CONTENT_TYPE)
