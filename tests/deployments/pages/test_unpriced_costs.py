"""What a deployment costs while a price is missing is said as not known, never as $0."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client

from deployments.models import Deployment
from fleet.models import Cluster, LedgerRow, Node, UnpricedHour, WorkloadHour
from portal.accounts.models import User
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.page import Part, page

pytestmark = pytest.mark.django_db


def unprice(world: World, deployment: Deployment, *, hours: int) -> None:
    """So many of the oldest hours have no price."""
    cluster = Cluster.objects.get(pk=world.cluster_id)
    rows = LedgerRow.objects.filter(workload_labels__deployment=deployment.name).order_by("hour")
    node = Node.objects.create(
        cluster=cluster,
        uid=rows[0].node_uid,
        name=rows[0].node_name,
        instance_type="lab.1x",
        gpu_count=1,
        first_seen_at=rows[0].hour,
        last_seen_at=world.clock.at,
    )
    UnpricedHour.objects.bulk_create(UnpricedHour(node=node, hour=row.hour) for row in rows[:hours])


def tab_of(client: Client, deployment: Deployment) -> Part:
    return page(client.get(f"/vision/deployments/{deployment.name}/cost"))


def test_a_deployment_without_any_price_has_no_cost(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = world.serving()
    history.write(world, deployment, hours=2, price=Decimal(0))
    unprice(world, deployment, hours=2)

    tab = tab_of(signed_in(world.viewer), deployment)

    assert tab.row("vision/detector 1")["$ this month"] == "unpriced"
    month = f"{world.clock.at:%B}"
    unknown = [tab.terms(name)[0] for name in (month, "1,000 inferences", "Estimated")]
    assert unknown == ["not known"] * 3
    assert "2.0 GPU-hours of this month have no price." in tab.text
    assert "$0" not in tab.row("vision/detector 1").values()


def test_hours_without_a_price_leave_the_cost_of_an_inference_unknown(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = world.serving()
    history.write(world, deployment, hours=4)
    unprice(world, deployment, hours=1)
    client = signed_in(world.viewer)

    tab = tab_of(client, deployment)
    costs = page(client.get("/costs?group=deployment"))

    assert tab.row("vision/detector 1")["$ this month"] == "$4.02"
    assert tab.terms("1,000 inferences") == ["not known", "a price is missing"]
    row = costs.row("vision/detector")
    assert row["Cost"].startswith("$4.02")
    assert row["Cost"].endswith("1.0 GPU-h unpriced")
    assert (row["$/1k inferences"], row["Change"]) == ("not known", "—")


def test_a_moment_without_a_price_is_said_as_less_than_a_tenth_of_an_hour(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    """Who opens the costs in the first minutes of a node without a price: "0.0 GPU-h unpriced" says nothing."""
    deployment = world.serving()
    history.write(world, deployment, hours=4, gpu_ms=9_000)
    unprice(world, deployment, hours=1)
    client = signed_in(world.viewer)

    tab = tab_of(client, deployment)
    costs = page(client.get("/costs?group=deployment"))

    assert costs.row("vision/detector")["Cost"].endswith("less than 0.1 GPU-h unpriced")
    assert "less than 0.1 GPU-hours of this month have no price." in tab.text
    assert "0.0 GPU" not in tab.text + costs.text


def test_the_cost_of_an_inference_has_enough_digits(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    deployment = world.serving()
    history.write(world, deployment, hours=2, requests=lambda _: 73_000)
    WorkloadHour.objects.update(inference_count=73_000)

    tab = tab_of(signed_in(world.viewer), deployment)

    assert tab.terms("1,000 inferences") == ["$0.014", "146,000 inferences this month"]
