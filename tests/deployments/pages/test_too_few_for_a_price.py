"""Fewer inferences than a price is for: dollars and count everywhere, and no price; REST and its CSV stay exact."""

from __future__ import annotations

import csv
from collections.abc import Callable

import pytest
from django.test import Client

from fleet.models import WorkloadHour
from portal.accounts.models import User
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]


def served(world: World, inferences: int) -> None:
    """Two hours at $1.006, and so many inferences in one of them."""
    deployment = world.serving()
    history.write(world, deployment, hours=2)
    WorkloadHour.objects.update(inference_count=0)
    latest = WorkloadHour.objects.latest("start")
    WorkloadHour.objects.filter(pk=latest.pk).update(inference_count=inferences)


@pytest.mark.parametrize(
    ("inferences", "price", "tab", "tile", "exact", "note"),
    [
        (
            *(1, "too few", ["too few", "$2.01 for 1 inference this month"]),
            *("$2.01 for 1 inference", 2012.0, "1 inference: too few for a price per 1,000"),
        ),
        (
            *(999, "too few", ["too few", "$2.01 for 999 inferences this month"]),
            "$2.01 for 999 inferences",
            *(2.014014, "999 inferences: too few for a price per 1,000"),
        ),
        (
            *(1000, "$2.01", ["$2.01", "1,000 inferences this month"]),
            *("For counted inferences", 2.012, ""),
        ),
    ],
)
def test_too_few_have_no_price(
    world: World,
    signed_in: SignIn,
    inferences: int,
    price: str,
    tab: list[str],
    tile: str,
    exact: float,
    note: str,
) -> None:
    served(world, inferences)
    client = signed_in(world.viewer)

    costs = page(client.get("/costs?group=deployment"))
    of_deployment = page(client.get("/vision/deployments/detector/cost"))

    assert of_deployment.terms("1,000 inferences") == tab
    assert costs.row("vision/detector")["$/1k inferences"] == price
    assert costs.row("vision/detector")["Inferences"] == f"{inferences:,}"
    assert tile in costs.text
    text = client.get("/costs.csv?group=deployment").getvalue().decode()
    row = next(row for row in csv.DictReader(text.splitlines()) if row["group"] != "Idle")
    assert row["total_usd"] == "2.012000"
    assert row["usd_per_1k_inferences"] == ("" if note else "2.012000")
    assert row["too_few_for_a_price"] == note
    answer = client.get("/api/v1/costs?group_by=deployment").json()["rows"][0]
    assert float(answer["usd_per_1k_inferences_amount"]) == exact
