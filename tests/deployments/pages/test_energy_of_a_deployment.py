"""The tab Cost of a deployment says what its revisions took, or that it is not known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from fleet.models import WorkloadHour
from portal.accounts.models import User
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db


def test_the_cost_tab_has_kwh_by_revision(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = world.serving()
    history.write(world, deployment, hours=2)
    tab = f"/vision/deployments/{deployment.name}/cost"
    client = signed_in(world.viewer)
    unknown = page(client.get(tab)).row("vision/detector 1")["Energy"]

    WorkloadHour.objects.update(energy_mj=3_600_000_000 // 5, energy_ms=3_600_000)
    known = page(client.get(tab)).row("vision/detector 1")["Energy"]

    assert (unknown, known) == ("not known", "0.40 kWh")
