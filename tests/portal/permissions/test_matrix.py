"""Every page and every operation as everyone: what they get, and that a refusal writes nothing.

A new address without a row fails here. matrix.py says how a row is written.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.test import Client

from portal.accounts import delegations
from portal.accounts.models import Role, User
from portal.core import clock
from tests.accounts import make_membership, make_user
from tests.portal.api.full_world import FullWorld
from tests.portal.permissions import matrix, operations, pages
from tests.portal.permissions.matrix import ROLES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("frame_once")]
ROWS = (*pages.ROWS, *operations.ROWS)


def person(full: FullWorld, role: str) -> User | None:
    if role == "anonymous":
        return None
    if role != "delegate":
        user: User = getattr(full.world, role)
        return user
    delegate = make_user(username="delegate")
    make_membership(user=delegate, team=full.world.team, role=Role.MEMBER)
    delegations.name_delegate(
        actor=full.world.lead,
        team=full.world.team,
        username="delegate",
        starts_at=clock.now(),
        ends_at=clock.now() + timedelta(days=1),
        reason="away",
    )
    return delegate


def test_every_address_has_exactly_one_row(full_world: FullWorld) -> None:
    client = Client()
    client.force_login(full_world.world.admin)
    counted = Counter(row.key for row in ROWS)

    there = matrix.pages(client) | matrix.operations()

    assert sorted(there - counted.keys()) == [], "write a row in pages/ or operations/"
    assert sorted(counted.keys() - there) == [], "these addresses are gone"
    assert [key for key, count in counted.items() if count > 1] == []


@pytest.mark.parametrize("role", ROLES)
def test_everyone_gets_what_the_table_says(full_world: FullWorld, role: str) -> None:
    user = person(full_world, role)
    cookies = matrix.sign_in(user)
    wrong, changed = {}, {}
    for row in ROWS:
        calls = list(full_world.world.cluster.writes)
        answer = matrix.send(row, user, cookies, full_world)
        expected = row.expected(role)
        is_refused = role not in row.allowed.split()
        if role == "anonymous" and is_refused and not row.is_api:
            is_right = answer.status == 401 or answer.location.startswith("/sign-in?next=")
        else:
            is_right = answer.status == expected
        if not is_right:
            wrong[row.key] = f"{answer.status} {answer.location} instead of {expected}"
        if is_refused and (answer.writes or full_world.world.cluster.writes != calls):
            changed[row.key] = answer.writes

    assert wrong == {}
    assert changed == {}
