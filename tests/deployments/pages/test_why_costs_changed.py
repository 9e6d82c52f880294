"""The Cost tab of a deployment says why its cost changed, and leads to the rows behind it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta

import pytest
from django.test import Client

from fleet.models import LedgerRow
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
TAB = "/vision/deployments/detector/cost"


def serve_two_hours(world: World) -> None:
    """Two hours of $1.006, in the middle of a month."""
    deployment = world.serving()
    later = (world.clock.at.replace(day=1) + timedelta(days=40)).replace(day=15, hour=12)
    world.clock.move((later - world.clock.at).total_seconds())
    history.write(world, deployment, hours=2)


def test_more_hours_are_named_with_their_rows(world: World, signed_in: SignIn) -> None:
    """One hour more than in the same time before this month."""
    serve_two_hours(world)
    month = clock.now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    earlier = LedgerRow.objects.order_by("hour").filter(kind="allocated")[0]
    earlier.pk, earlier.hour = None, month - timedelta(hours=3)
    earlier.save(force_insert=True)
    client = signed_in(world.viewer)

    why = page(client.get(TAB)).part("why")

    assert "Costs rose by $1.01: $1.01 more hours." in why.text
    assert why.row("more hours")["GPU-hours before"] == "1.0"
    assert why.row("more hours")["GPU-hours now"] == "2.0"
    rows = page(client.get(why.links["$1.01 more hours"])).rows
    assert [row["Cost"] for row in rows] == ["$1.01"] * 3


def test_without_earlier_data_there_is_nothing_to_compare(world: World, signed_in: SignIn) -> None:
    serve_two_hours(world)

    why = page(signed_in(world.viewer).get(TAB)).part("why")

    assert "No earlier data" in why.text
