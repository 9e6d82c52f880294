"""The teams that an administrator sees, with the GPUs that each holds."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.accounts import make_team, make_user
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

    held = [row["GPUs in use"] for row in shown.rows]
    assert len(held) == 22
    assert sorted(set(held)) == ["0", "1.5"]
