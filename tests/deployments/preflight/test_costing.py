"""What a request costs: this month, a whole month, and while two revisions run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from deployments.changes.services import drafts, requests
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from fleet.models import InstancePrice
from portal.accounts.models import Team
from portal.core import clock
from portal.core.errors import Invalid
from tests.deployments.world import World

HOURLY = Decimal("1.006")


def hours_left() -> Decimal:
    at = clock.now()
    first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    after = first.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)
    return Decimal(int((after - at).total_seconds())) / 3600


def budget_of(world: World, **changed: Any) -> Check:
    result = preflight.check(actor=world.member, draft=world.draft(**changed))
    return next(check for check in result.checks if check.name == "Budget")


def test_whole_month_over_budget_fails_however_little_of_this_month_is_left(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal(4000))
    InstancePrice.objects.update(usd_per_hour_amount=Decimal("8.801"))
    world.clock.move(float(hours_left() - 1) * 3600)

    check = budget_of(world)

    assert check.ok is False
    assert not check.is_refusal
    assert check.detail == ("Forecast $8.80 this month, $6,425 in a full month, of $4,000.")
    assert check.fix.startswith("Over by $2,425.")


def test_most_replicas_count_against_the_budget(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal(2000))
    fixed = budget_of(world, min_replicas=2, max_replicas=2)
    ranged = budget_of(world, min_replicas=2, max_replicas=4)

    assert (fixed.ok, ranged.ok) == (True, False)
    assert "$1,469 in a full month ($2,938 at max replicas), of" in ranged.detail


def test_canary_costs_double_only_while_it_runs(world: World) -> None:
    deployment = world.serving()
    steps = [
        {"weight": 5, "soak_seconds": 5400, "min_requests": 0},
        {"weight": 100, "soak_seconds": 1800, "min_requests": 0},
    ]
    draft = drafts.canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan={"watch_seconds": 1800},
    )

    cost = drafts.check(actor=world.member, draft=draft).cost

    assert cost is not None
    assert (cost.overlap_seconds, cost.overlap_amount) == (9000, Decimal("2.52"))
    # One revision stays: a whole month is that of one.
    assert cost.team_month_min == Decimal("734.38")
    assert cost.spent is not None
    assert cost.forecast is not None
    steady = cost.spent + HOURLY * hours_left()
    # Three amounts are rounded to cents.
    assert abs(cost.forecast - steady - Decimal("2.5") * HOURLY) <= Decimal("0.02")
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
    )
    assert change.cost["overlap_seconds"] == "7800", "ten minutes of watch by default"


def test_roll_back_costs_nothing_beside_what_it_replaces(world: World) -> None:
    deployment = world.serving()
    assert preflight.evaluate_revision(
        deployment=deployment,
        version=world.version2,
        spec=world.draft().spec,
        number=2,
    ).cost.team_month_min == Decimal("734.38")


def test_binding_budget_refuses_what_costs_more_than_it_replaces(world: World) -> None:
    deployment = world.serving()
    Team.objects.filter(pk=world.team.pk).update(
        monthly_budget_amount=Decimal(1), is_budget_binding=True
    )
    world.team.refresh_from_db()

    more = budget_of(world)
    with pytest.raises(Invalid, match="Over by"):
        requests.request_deploy(actor=world.member, draft=world.draft(name="second"))
    assert not ChangeRequest.objects.filter(deployment__name="second").exists()
    same = drafts.check(
        actor=world.member,
        draft=drafts.canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{"weight": 50, "soak_seconds": 60, "min_requests": 0}],
        ),
    )

    assert more.is_refusal
    assert more.fix.endswith("or ask a platform admin for a larger budget.")
    budget = next(check for check in same.checks if check.name == "Budget")
    assert (budget.ok, budget.is_refusal) == (False, False)
    assert budget.fix.endswith("or let the approver decide.")
