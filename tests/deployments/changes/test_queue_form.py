"""The form offers the queues of the team's namespace, and says why there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.models import Revision
from portal.accounts.models import User
from tests import page as pages
from tests.deployments import queues
from tests.deployments.changes.test_new_deployment import go_on
from tests.deployments.changes.test_wizard_guards import review, serving_step
from tests.deployments.world import World


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def test_the_form_lists_the_queues_of_the_team_only(world: World, client: Client) -> None:
    queues.install(world)

    page = pages.page(go_on(client, serving_step(world, client), "scaling", name="street"))

    assert "There: serving." in page.text
    assert "serving" in page.options
    assert "other" not in page.options


def test_a_request_with_a_queue_is_reviewed_and_stored(world: World, client: Client) -> None:
    queues.install(world)

    reviewed = review(world, client, placement_queue="serving")
    go_on(client, reviewed, "submit")

    assert pages.page(reviewed).term("Kueue queue") == "serving"
    assert Revision.objects.get().spec["placement"]["queue"] == "serving"
