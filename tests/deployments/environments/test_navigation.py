"""Everyone of a team finds the rules of environments from the list of deployments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.dashboard import jump_targets
from tests.deployments.world import World
from tests.page import page

_PATH = "/admin/environments"


@pytest.mark.parametrize("name", ["viewer", "member", "lead", "admin"])
def test_the_list_of_deployments_leads_there(
    world: World, signed_in: Callable[[User], Client], name: str
) -> None:
    client = signed_in(getattr(world, name))

    listed = page(client.get("/vision/deployments"))
    opened = client.get(_PATH)

    assert listed.link("Environments") == _PATH
    assert opened.status_code == 200
    assert "production" in page(opened).text.lower()


@pytest.mark.parametrize(("name", "administers"), [("member", False), ("lead", True)])
def test_a_member_s_page_leads_to_nothing_that_would_refuse(
    world: World, signed_in: Callable[[User], Client], name: str, administers: bool
) -> None:
    client = signed_in(getattr(world, name))

    links = page(client.get(_PATH)).links

    assert ("/admin" in links.values()) is administers
    assert client.get("/admin").status_code == (200 if administers else 403)


def test_the_search_finds_it(world: World) -> None:
    found = jump_targets.find(actor=world.member, team=None, text="environ")

    assert [(target.text, target.url) for target in found] == [("Environments", _PATH)]
