from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import Deployment
from deployments.states import DeploymentState
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
QUERIES = 15


def more(world: World, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        Deployment.objects.create(
            team=world.team,
            cluster_id=world.cluster_id,
            name=f"other{number:02}",
            namespace="vision",
            created_by=world.member,
            created_at=world.clock.at,
        )


def test_the_list_needs_as_many_queries_for_many_rows_as_for_two(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    world.serving()
    more(world, 1)
    client = signed_in(world.viewer)
    client.get("/vision/deployments")
    with django_assert_num_queries(QUERIES):
        client.get("/vision/deployments")
    more(world, 20, start=1)

    with django_assert_num_queries(QUERIES):
        client.get("/vision/deployments")


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("q=other00", "other00", "other01"),
        ("q=detector", "detector", "other01"),
        ("state=ready", "detector", "other01"),
        ("sort=-name&page=2", "detector", "other29"),
        ("page=999", "other29", "detector"),
        ("sort=nonsense&page=x", "detector", "other29"),
    ],
)
def test_search_filter_sort_and_page_are_in_the_address(
    world: World, signed_in: SignIn, query: str, shown: str, hidden: str
) -> None:
    world.serving()
    more(world, 30)

    links = page(signed_in(world.viewer).get(f"/vision/deployments?{query}")).links

    assert shown in links
    assert hidden not in links


def test_the_rows_poll_the_same_address(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.viewer)

    part = client.get("/vision/deployments?q=det", **HTMX, HTTP_HX_TARGET="deployment-rows")

    assert 'hx-get="/vision/deployments?q=det"' in part.content.decode()
    assert not page(part).is_whole_page


def test_a_degraded_row_says_why(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(
        state=DeploymentState.DEGRADED, state_reason="out of GPU memory"
    )

    page = signed_in(world.viewer).get("/vision/deployments").content.decode()

    assert "Degraded" in page
    assert "out of GPU memory" in page


def test_an_empty_list_teaches_the_next_step(world: World, signed_in: SignIn) -> None:
    empty = page(signed_in(world.member).get("/vision/deployments"))

    assert "Nothing is deployed yet." in empty.text
    assert "/vision/deployments/new" in empty.links.values()
