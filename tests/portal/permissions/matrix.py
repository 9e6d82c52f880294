"""Who gets what at every address: how a row is written, requested and checked.

A row is one method at one address, as the URL resolver has it (pages) or the OpenAPI document
(REST):

    Row("POST <slug:team>/pipelines/<slug:name>/stop", MEMBERS, ok=302, body={"comment": "x"})
    Row("POST pipelines/{pipeline_id}/stop", MEMBERS, ok=200, body={"reason": "x"})

`allowed` get `ok`. All others are refused: who is not signed in is sent to the sign-in page, or
gets 401 (of a page: the sign-in form, which keeps what was typed); a stranger gets 404, or
`stranger` where nothing is hidden; the rest of the team 403.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

from django.db import connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.api.problems import CONTENT_TYPE as PROBLEM
from tests.portal import addresses, api_document
from tests.portal.api.full_world import FullWorld

ROLES = ("anonymous", "stranger", "viewer", "member", "delegate", "lead", "admin")
EVERYONE = "stranger viewer member delegate lead admin"
TEAM = "viewer member delegate lead admin"
MEMBERS = "member delegate lead admin"
LEADS = "lead admin"
ADMINS = "admin"
DECIDERS = "delegate lead admin"
METHODS = ("get", "post", "put", "patch", "delete")
_WRITES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "MERGE")
# The team whose page was opened last is remembered; nothing else may be written by a refusal.
_UNRELATED = ('"accounts_browsersession"', 'SET "last_team_id"')


@dataclass(frozen=True)
class Row:
    """`named` replaces names in the address, `others` the answer to one role."""

    key: str
    allowed: str
    ok: int = 200
    stranger: int = 404
    body: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    named: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_api(self) -> bool:
        return self.key.partition(" ")[0].islower()

    def expected(self, role: str) -> int:
        if role in self.others:
            return self.others[role]
        if role in self.allowed.split():
            return self.ok
        if role == "anonymous":
            return 401 if self.is_api else 302
        return self.stranger if role == "stranger" else 403


@dataclass(frozen=True)
class Answer:
    status: int
    location: str
    writes: tuple[str, ...]
    code: str = ""


def pages(client: Client) -> set[str]:
    """Every method of every page: "GET <slug:team>/deployments/<slug:name>"."""
    return {
        f"{method} {route}"
        for route in addresses.patterns()
        for method in addresses.methods_of(client, route)
    }


def operations() -> set[str]:
    """Every operation of the API: "get teams/{slug}"."""
    document = api_document.read()
    return {
        f"{method} {path.removeprefix('/api/v1/')}"
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    }


def sign_in(user: User | None) -> SimpleCookie:
    """The cookies of a browser in which this person has signed in."""
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.cookies


def send(
    row: Row, user: User | None, cookies: SimpleCookie, full: FullWorld, *, token: str = ""
) -> Answer:
    """The response to a person, or to the token; its changes are rolled back."""
    method, _, route = row.key.partition(" ")
    names = {**full.names, **row.named}
    body = {k: names.get(v, v) if isinstance(v, str) else v for k, v in row.body.items()}
    client: Any = APIClient() if row.is_api else Client()
    if token:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    elif user is not None and row.is_api:
        client.force_authenticate(user)
    else:
        client.cookies = copy.deepcopy(cookies)
    with transaction.atomic(), written() as writes:
        if row.is_api:
            address = f"/api/v1/{route.format(**names)}{row.query}"
            answer = getattr(client, method)(
                address, None if method == "get" else body, format="json"
            )
        else:
            path = addresses.path_of(route, names) + row.query
            answer = getattr(client, method.lower())(path, body)
        if answer.streaming:
            b"".join(answer.streaming_content)
        transaction.set_rollback(True)
    is_problem = answer.get("Content-Type") == PROBLEM
    code = str(json.loads(answer.content)["code"]) if is_problem else ""
    return Answer(answer.status_code, answer.get("Location", ""), tuple(writes), code)


@contextmanager
def written() -> Iterator[list[str]]:
    failures: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        if sql.lstrip().upper().startswith(_WRITES) and not any(item in sql for item in _UNRELATED):
            failures.append(sql[:100])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield failures
