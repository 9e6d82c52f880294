"""The month's forecast is compared with budgets of the same costs only."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from portal.accounts.models import Membership, Role, Team, User
from tests.fleet.one_node import admin, member, nlp, node, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


def forecast_of(client: Client, query: str = "") -> str:
    return page(client.get(f"/costs{query}")).term("Month forecast")


def test_one_team_is_compared_with_its_budget(member: Client, admin: Client) -> None:
    compared = "$0 of $1,000 At the current rate; 0% used"

    assert forecast_of(member) == compared
    assert forecast_of(admin, "?team=vision") == compared


def test_the_whole_fleet_has_no_budget_because_idle_is_no_teams(
    admin: Client, vision: Team
) -> None:
    assert forecast_of(admin) == "$0 Choose a team to see its budget"


def test_a_team_without_a_budget_leaves_the_sum_without_one(member: Client, nlp: Team) -> None:
    user = User.objects.get(username="member")
    Membership.objects.create(user=user, team=nlp, role=Role.MEMBER)
    alone = forecast_of(member)

    Team.objects.filter(pk=nlp.pk).update(monthly_budget_amount=Decimal(500))
    both = forecast_of(member)
    Team.objects.update(monthly_budget_amount=0)
    none = forecast_of(member)

    assert alone == "$0 Choose a team to see its budget"
    assert both.startswith("$0 of $1,500")
    assert none == "$0 no budget"
