"""What a million tokens of a language model cost, and how a deployment's cost page names things."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from deployments.pages.web import cost
from fleet.costs.domain.results import CostRow, GroupBy, GroupKey
from fleet.costs.selectors import costs
from fleet.models import Node, WorkloadHour
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
HOUR = NOW.replace(minute=0)


def rows_of_vision() -> dict[str, CostRow]:
    table = costs.table(
        team_slugs=["vision"],
        start=HOUR,
        end=HOUR + timedelta(hours=1),
        group_by=GroupBy.DEPLOYMENT,
    )
    return {row.key.deployment: row for row in table.rows}


def test_a_million_tokens_cost_the_gpu_time_divided_by_all_tokens(node: Node, vision: Team) -> None:
    chat = occupy(node, vision, "chat", 1_000_000, None)
    detector = occupy(node, vision, "detector", 1_000_000, None)
    WorkloadHour.objects.create(
        workload=chat,
        start=HOUR,
        inference_count=1000,
        prompt_tokens=1_500_000,
        generation_tokens=500_000,
        observed_ms=1,
    )
    WorkloadHour.objects.create(workload=detector, start=HOUR, inference_count=500, observed_ms=1)

    rows = rows_of_vision()

    # One of four GPUs for five minutes at $5.672 an hour.
    assert rows["chat"].amount == Decimal("0.118167")
    assert rows["chat"].tokens == 2_000_000
    assert rows["chat"].usd_per_1m_tokens_amount == Decimal("0.059084")
    assert rows["chat"].usd_per_1k_inferences_amount == Decimal("0.118167")
    assert (rows["detector"].tokens, rows["detector"].usd_per_1m_tokens_amount) == (None, None)


@pytest.mark.parametrize(
    ("tokens", "title", "amount", "detail"),
    [
        (4_000_000, "1,000,000 tokens", Decimal("0.5"), "4,000,000 tokens this month"),
        (999_999, "1,000,000 tokens", None, "$2.00 for 999,999 tokens this month"),
        (None, "1,000 inferences", Decimal(1), "2,000 inferences this month"),
    ],
)
def test_the_cost_of_a_deployment_is_by_what_it_answers_with(
    tokens: int | None, title: str, amount: Decimal | None, detail: str
) -> None:
    row = CostRow(GroupKey(), Decimal(2), Decimal(0), Decimal(1), inferences=2000, tokens=tokens)

    tile = cost._unit_tile([row], Decimal(2))

    price = tile.unit_price
    assert price is not None
    shown = None if price.is_of_too_few else price.amount
    assert (tile.title, shown, tile.detail) == (title, amount, detail)


def test_the_costs_page_shows_tokens_once_a_language_model_counts_them(
    admin: Client, node: Node, vision: Team
) -> None:
    chat = occupy(node, vision, "chat", 1_000_000, None)
    occupy(node, vision, "detector", 1_000_000, None)
    address = "/costs?group=deployment"

    assert "$/1M tokens" not in page(admin.get(address)).text

    WorkloadHour.objects.create(
        workload=chat, start=HOUR, inference_count=1000, prompt_tokens=2_000_000, observed_ms=1
    )
    shown = page(admin.get(address))

    costs_of = {name: shown.row(name) for name in ("vision/chat", "vision/detector")}
    assert {name: (row["Tokens"], row["$/1M tokens"]) for name, row in costs_of.items()} == {
        "vision/chat": ("2,000,000", "$0.059"),
        "vision/detector": ("—", "—"),
    }


def test_a_revision_is_named_as_its_label_says() -> None:
    key = GroupKey(team_slug="vision", deployment="detector", revision="r2")

    assert key.label == "vision/detector r2"


def test_one_gpu_and_several_are_counted_in_english() -> None:
    assert [cost.describe_gpus(Decimal(n)) for n in ("0", "0.5", "1.000", "2")] == [
        "0 GPUs",
        "0.5 GPUs",
        "1 GPU",
        "2 GPUs",
    ]
