"""Who reads "4% less than before" must not read of hours that count as $0 because their price is missing."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from fleet.models import Node, SealedHour, UnpricedHour
from portal.accounts.models import Team
from tests.fleet.costs.test_pages import HOUR, ledger
from tests.fleet.one_node import NOW, admin, node, still_clock, vision
from tests.page import page

__all__ = ["admin", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
CHANGE = re.compile("(No earlier data|Same as|Not compared).*")
MISSING = "Not compared: a price is missing"


@pytest.fixture
def two_days(node: Node, vision: Team) -> None:
    """A team and idle, each the same hour a day before and now."""
    for hour in (HOUR - timedelta(days=1), HOUR):
        SealedHour.objects.create(cluster=node.cluster, hour=hour, sealed_at=NOW)
        names: dict[str, Any] = {"hour": hour, "node_uid": node.uid}
        ledger("allocated", "1.418", team_slug="vision", namespace="vision", **names)
        ledger("idle", "4.254", **names)
    Node.objects.filter(pk=node.pk).update(gone_at=NOW - timedelta(days=30))


def changes(admin: Client) -> list[str]:
    costs = page(admin.get("/costs?range=24h"))
    return [CHANGE.search(costs.term(name))[0] for name in ("Spent", "Idle")]  # type: ignore[index]


def test_what_costs_the_same_says_so(admin: Client, two_days: None) -> None:
    assert changes(admin) == ["Same as previous period"] * 2


def test_nothing_is_compared_while_a_price_is_missing(
    admin: Client, node: Node, two_days: None
) -> None:
    UnpricedHour.objects.create(node=node, hour=HOUR)

    assert changes(admin) == [MISSING] * 2


def test_a_period_without_one_before_has_no_earlier_data(
    admin: Client, node: Node, vision: Team
) -> None:
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    ledger("idle", "4.254")
    Node.objects.filter(pk=node.pk).update(gone_at=NOW - timedelta(days=30))

    assert changes(admin) == ["No earlier data"] * 2
