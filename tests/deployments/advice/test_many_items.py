"""The page of advice with more than fits on it: totals are of all, and everything can be reached."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.test import Client

from deployments.advice.selectors import items
from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]


def _write(world: World, numbers: range, **more: Any) -> None:
    """Savings are the numbers, in dollars a month."""
    AdviceItem.objects.bulk_create(
        AdviceItem(
            **{
                "node_uid": f"uid-{number}",
                "subject": f"eks-test/node-{number:03}",
                "kind": "unused-node",
                "message": "Remove it.",
                "formula": "",
                "risk": "low",
                "risk_reason": "",
                "cost_amount": Decimal(1000),
                "saving_amount": Decimal(number),
                "first_seen_at": clock.now(),
                "computed_at": clock.now(),
                **more,
            }
        )
        for number in numbers
    )


def test_totals_are_of_all_items_and_pages_show_the_rest(world: World, signed_in: SignIn) -> None:
    _write(world, range(1, 46))
    # Another way to save on the node with the largest saving: the two do not add up.
    _write(world, range(45, 46), kind="another", saving_amount=Decimal(9))
    admin = signed_in(world.admin)

    first, last = page(admin.get("/advice")), page(admin.get("/advice?page=3"))

    assert items.totals(world.admin) == items.Totals(46, 0, 0, Decimal(45 * 46 // 2))
    assert f"${45 * 46 // 2:,} a month, ${12 * 45 * 46 // 2:,} a year" in first.text
    assert [row["$ a month"] for row in first.rows] == [f"${n}" for n in range(45, 25, -1)]
    assert "node-045" in first.text
    assert "node-026" in first.text
    assert "node-025" not in first.text
    assert "1\N{EN DASH}20 of 46" in first.text
    assert "41\N{EN DASH}46 of 46" in last.text
    assert "node-001" in last.text
    assert items.totals(world.lead) == items.Totals(0, 0, 0, Decimal(0))


def test_answered_items_are_listed_alone_when_they_are_many(
    world: World, signed_in: SignIn
) -> None:
    _write(world, range(1, 3))
    until = clock.now() + timedelta(days=7)
    _write(
        world,
        range(11, 36),
        state=AdviceState.SNOOZED,
        snoozed_until=until,
        answered_by=world.admin,
    )
    admin = signed_in(world.admin)

    shown, alone = page(admin.get("/advice")), page(admin.get("/advice?show=answered&page=2"))

    assert "Snoozed and dismissed" in shown.text
    assert "node-026" in shown.text
    assert "node-025" not in shown.text
    assert "Show all 25" in shown.text
    assert "21\N{EN DASH}25 of 25" in alone.text
    assert "node-015" in alone.text
    assert "node-016" not in alone.text
    assert "node-001" not in alone.text
    assert "Back to open advice" in alone.text
    assert page(admin.get("/advice?show=unknown")).text == shown.text


def test_what_was_requested_is_listed_alone(world: World, signed_in: SignIn) -> None:
    _write(world, range(1, 3))
    admin = signed_in(world.admin)

    shown = page(admin.get("/advice"))

    assert "Promised and realised" not in shown.text
    assert "requested" not in " ".join(shown.links)


def test_a_page_of_advice_needs_as_many_queries_for_many_items_as_for_two(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    admin = signed_in(world.admin)
    _write(world, range(1, 3))
    admin.get("/advice")
    with django_assert_num_queries(15):
        admin.get("/advice")
    _write(world, range(3, 30))

    with django_assert_num_queries(15):
        admin.get("/advice")
