"""The ways out of a first deployment that does not come up, on its page."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from portal.accounts.models import User
from tests.deployments.changes.test_giving_up import BACK_OFF, begun, pod
from tests.deployments.world import World

SignIn = Callable[[User], Client]


def test_pages_offer_both_ways_out_while_it_tries(world: World, signed_in: SignIn) -> None:
    deployment = begun(world)
    pod(world, BACK_OFF)
    world.reconcile_now(deployment)
    client = signed_in(world.member)

    page = client.get("/vision/deployments/detector").content.decode()
    assert "/vision/deployments/detector/stop" in page
    assert "/vision/deployments/detector/retire" in page
    response = client.post("/vision/deployments/detector/retire", {"confirmation": "detector"})

    assert response.status_code == 302
    assert world.reconcile_now(deployment).state == "stopped"
