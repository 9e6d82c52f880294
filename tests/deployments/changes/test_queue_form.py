"""The form offers the queues of the team's namespace, and says why there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.models import Revision
from portal.accounts.models import User
from tests import page as pages
from tests.deployments import queues
from tests.deployments.changes.test_deploy_form_guards import filled_in, first_page, summary_of
from tests.deployments.changes.test_new_deployment import check, send
from tests.deployments.world import World


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def test_the_form_lists_the_queues_of_the_team_only(world: World, client: Client) -> None:
    queues.install(world)

    page = pages.page(check(client, first_page(world, client), name="street"))

    assert "There: serving." in page.text
    assert "serving" in page.options
    assert "other" not in page.options


def test_a_request_with_a_queue_says_it_and_is_stored(world: World, client: Client) -> None:
    queues.install(world)

    page = filled_in(world, client, placement_queue="serving")
    send(client, page)

    assert "queue serving" in summary_of(pages.page(page), "Placement")
    assert Revision.objects.get().spec["placement"]["queue"] == "serving"
