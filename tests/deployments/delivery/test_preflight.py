"""What is told and refused before a request is made."""

from __future__ import annotations

from decimal import Decimal

from deployments.models import (
    Deployment,
)
from deployments.services import changes, preflight
from fleet.domain.cluster_errors import ObjectInvalid, Unreachable
from portal.accounts.models import Team
from portal.core.errors import Invalid
from tests.deployments.delivery.conftest import World
from tests.deployments.delivery.refusals import refused


def test_an_engine_that_the_cluster_lacks_is_refused_with_the_others(world: World) -> None:
    from fleet.models import Cluster

    Cluster.objects.update(capabilities={"engines": ["triton"], "notes": ["KServe is missing."]})

    with refused(world, Invalid) as raised:
        changes.request_deploy(actor=world.member, draft=world.draft())
    assert raised[0].fields["engine"].endswith("KServe is missing. Choose triton.")


def test_what_the_cluster_refuses_in_a_dry_run_is_refused(world: World) -> None:
    world.cluster.refuse["InferenceService"] = ObjectInvalid("no such runtime")

    with refused(world, Invalid) as raised:
        changes.request_deploy(actor=world.member, draft=world.draft())
    assert "no such runtime" in raised[0].message


def test_a_cluster_that_does_not_answer_is_not_known_and_does_not_refuse(world: World) -> None:
    world.cluster.fail_with = Unreachable("connection refused")

    found = preflight.check(actor=world.member, draft=world.draft())

    check = next(check for check in found.checks if check.name == "Server dry-run")
    assert check.ok is None
    assert found.can_submit


def test_cost_and_forecast_are_told_before_anything_happens(world: World) -> None:
    found = preflight.check(actor=world.member, draft=world.draft(min_replicas=2, max_replicas=4))

    assert found.cost.per_hour == Decimal("2.012000")
    assert (found.cost.month_min, found.cost.month_max) == (
        Decimal("1468.76"),
        Decimal("2937.52"),
    )
    assert found.cost.budget == Decimal("5000.00")
    assert found.url == "http://gateway.example/vision/detector"
    assert "kind: InferenceService" in found.manifests
    assert [check.name for check in found.checks] == [
        "Name",
        "Version",
        "Engine",
        "Quota",
        "Budget",
        "Capacity now",
        "Server dry-run",
    ]
    assert Deployment.objects.count() == 0


def test_over_budget_is_told_but_left_to_the_approver(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal(1))

    found = preflight.check(actor=world.member, draft=world.draft())

    check = next(check for check in found.checks if check.name == "Budget")
    assert check.ok is False
    assert found.can_submit
