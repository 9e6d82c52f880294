"""The teams that an administrator sees, with the GPUs that each holds."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.local import invitations
from portal.accounts.models import Role
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.one_node import nlp, node, occupy, vision
from tests.page import page

__all__ = ["nlp", "node", "vision"]
pytestmark = pytest.mark.django_db
QUERIES = 11


def test_many_teams_need_no_more_queries_and_each_has_its_gpus(
    node: Any, nlp: Any, vision: Any, django_assert_num_queries: Any
) -> None:
    occupy(node, vision, "detector", 1_000_000, None)
    occupy(node, vision, "classifier", 500_000, None)
    client = Client()
    client.force_login(make_user(username="ada", is_platform_admin=True))
    client.get("/admin")
    with django_assert_num_queries(QUERIES):
        client.get("/admin")
    for number in range(20):
        make_team(slug=f"team-{number}")

    with django_assert_num_queries(QUERIES):
        shown = page(client.get("/admin"))

    held = [row["In use"] for row in shown.rows]
    assert len(held) == 22
    assert sorted(set(held)) == ["0", "1.5"]


def test_a_large_team_is_shown_in_parts_that_turn_by_themselves(vision: Any) -> None:
    for number in range(30):
        make_membership(user=make_user(username=f"ana{number:02}"), team=vision)
    admin = make_user(username="ada", is_platform_admin=True)
    invitations.invite(
        actor=admin, team=vision, name="Ben", email="ben@example.org", role=Role.MEMBER
    )
    client = Client()
    client.force_login(admin)

    first = page(client.get("/admin/teams/vision"))
    second = page(client.get("/admin/teams/vision?members=2&invitations=1"))

    assert "Members 30" in first.text
    assert "1\N{EN DASH}25 of 30" in first.text
    assert first.link("Next") == "?members=2#members"
    assert "26\N{EN DASH}30 of 30" in second.text
    assert second.link("Previous") == "?members=1&invitations=1#members"
    shown = [row["Role"] for row in first.rows if row.get("Role") == "member"]
    assert len(shown) == 26
    assert "ben@example.org" in second.text
    assert page(client.get("/admin/teams/vision?members=x")).text == first.text
