"""Every operation of the API with tokens: what their scopes let through, and that a refusal writes nothing."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest

from portal.accounts import tokens
from portal.accounts.models import User
from portal.accounts.operations import BROWSER, OPERATIONS, scope_of
from portal.accounts.scopes import Scope
from tests.portal.api.full_world import FullWorld
from tests.portal.permissions import matrix, operations
from tests.portal.permissions.matrix import Answer

pytestmark = pytest.mark.django_db
ROWS = {row.key: row for row in operations.ROWS}


@pytest.fixture(autouse=True)
def no_limit(settings: object) -> None:
    settings.SLIPWAY_API_REQUESTS_PER_MINUTE = 100_000  # type: ignore[attr-defined]  # pytest-django's fixture


def token_of(user: User, *scopes: Scope) -> str:
    plain = tokens.create(actor=user, name="tried", scopes=scopes, days=1).plain
    # The first use is noted, and would be a write of the request.
    tokens.user_of(plain)
    return plain


def ask(full: FullWorld, key: str, token: str) -> Answer:
    return matrix.send(ROWS[key], None, SimpleCookie(), full, token=token)


def test_every_operation_is_in_the_table_once() -> None:
    assert sorted(matrix.operations() ^ OPERATIONS.keys()) == []


def test_a_token_without_the_scope_of_an_operation_is_refused_and_nothing_is_written(
    full_world: FullWorld,
) -> None:
    admin = full_world.world.admin
    without = {
        None: token_of(admin, *Scope),
        Scope.UPLOAD: token_of(admin, Scope.REQUEST, Scope.DECIDE),
        Scope.REQUEST: token_of(admin, Scope.UPLOAD, Scope.DECIDE),
        Scope.DECIDE: token_of(admin, Scope.UPLOAD, Scope.REQUEST),
    }
    calls = list(full_world.world.cluster.writes)

    answers = {
        key: ask(full_world, key, without[scope])
        for key, scope in OPERATIONS.items()
        if scope != Scope.READ
    }

    expected = {
        key: (403, "browser_only" if OPERATIONS[key] is BROWSER else "missing_scope", ())
        for key in answers
    }
    assert {key: (a.status, a.code, a.writes) for key, a in answers.items()} == expected
    assert full_world.world.cluster.writes == calls


def test_a_token_with_only_the_scope_of_an_operation_gets_what_its_owner_gets(
    full_world: FullWorld,
) -> None:
    admin = full_world.world.admin
    held = {scope: token_of(admin, scope) for scope in Scope}

    answers = {
        key: ask(full_world, key, held[scope])
        for key, scope in OPERATIONS.items()
        if scope in (Scope.UPLOAD, Scope.REQUEST, Scope.DECIDE)
    }

    expected = {key: ROWS[key].expected("admin") for key in answers}
    assert {key: answer.status for key, answer in answers.items()} == expected


def test_an_address_that_is_not_in_the_table_is_for_browsers() -> None:
    assert scope_of("POST", "api/v1/something/new") is BROWSER
    assert scope_of("HEAD", "api/v1/changes/<int:change_id>") == Scope.READ
    assert scope_of("OPTIONS", "api/v1/teams") == Scope.READ
