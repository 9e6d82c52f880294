"""Step-up is asked by everything that makes or changes a decider or a credential, on pages and by REST."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from portal.accounts.models import User
from portal.accounts.oidc.providers import Provider
from tests.portal.api.full_world import FullWorld
from tests.portal.permissions import matrix, step_up_bodies, step_up_rows
from tests.portal.permissions.matrix import Answer, Row
from tests.portal.permissions.test_matrix import ROWS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("frame_once")]
OKTA = Provider("okta", "Okta", "https://okta.example", "slipway", "secret")


def writing_rows() -> Iterator[Row]:
    return (row for row in ROWS if row.key.split()[0].lower() != "get")


def actor_for(row: Row, full: FullWorld) -> User:
    """A person of the matrix who may."""
    role = next(role for role in ("admin", "lead", "member") if role in row.allowed.split())
    user: User = getattr(full.world, role)
    return user


def answers(full: FullWorld, keys: frozenset[str]) -> dict[str, Answer]:
    """To requests by people who signed in long ago."""
    result = {}
    for row in writing_rows():
        if row.key in keys:
            body = step_up_bodies.BODIES.get(row.key, row.body)
            user = actor_for(row, full)
            cookies = matrix.sign_in(user)
            result[row.key] = matrix.send(replace(row, body=body), user, cookies, full)
    return result


def is_asked(answer: Answer) -> bool:
    return (
        answer.code == "step_up_required"
        or answer.location.startswith("/confirm?")
        # The form is shown again after the confirmation.
        or (answer.status == 403 and not answer.code)
    )


@pytest.fixture(autouse=True)
def asking(full_world: FullWorld, settings: Any) -> None:
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    settings.SLIPWAY_OIDC = (OKTA,)


def test_every_writing_address_is_classified_once() -> None:
    lists = [step_up_rows.ASKED, step_up_rows.ASKS_FOR_SOME_CHOICES, step_up_rows.NOT]
    # Stopping what serves in production needs an approval, whoever requests it.
    there = {row.key for row in writing_rows() if row.allowed}

    assert sorted(there - frozenset().union(*lists)) == [], "classify it in step_up_rows.py"
    assert sorted(frozenset().union(*lists) - there) == [], "these addresses are gone"
    assert sum(map(len, lists)) == len(frozenset().union(*lists))


def test_deciders_and_credentials_need_a_recent_sign_in(full_world: FullWorld) -> None:
    got = answers(full_world, step_up_rows.ASKED)

    assert {key: answer.status for key, answer in got.items() if not is_asked(answer)} == {}
    assert {key: answer.writes for key, answer in got.items() if answer.writes} == {}


def test_nothing_else_asks(full_world: FullWorld) -> None:
    got = answers(full_world, step_up_rows.NOT)

    assert [key for key, answer in got.items() if is_asked(answer)] == []
