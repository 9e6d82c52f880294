"""A promotion as its requester and approver see it, on pages and by REST."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.services import promotions
from portal.accounts.models import User
from portal.core.errors import Conflict, NotFound
from tests.deployments.environments.promoting import (
    protect,
    request_production,
    staged,
)
from tests.deployments.world import World
from tests.page import page

SignedIn = Callable[[User], Client]


def test_the_preview_names_targets_of_the_same_model(world: World) -> None:
    live = world.serving(name="live")
    world.version1 = world.version2
    deployment = staged(world)

    found = promotions.preview(actor=world.member, deployment_id=deployment.pk)

    assert (found.environment, found.targets, found.is_possible) == ("production", (live,), True)
    with pytest.raises(Conflict) as raised:
        promotions.preview(actor=world.member, deployment_id=live.pk)
    assert raised.value.code == "last_environment"
    with pytest.raises(NotFound):
        promotions.preview(actor=world.stranger, deployment_id=deployment.pk)


def test_the_api_reads_a_promotion(world: World) -> None:
    deployment = staged(world)
    protect(world, golden_required=True)
    client = APIClient()
    client.force_authenticate(world.member)

    answer = client.get(f"/api/v1/deployments/{deployment.pk}/promotion")

    assert answer.status_code == 200, answer.data
    assert (answer.data["environment"], answer.data["is_possible"]) == ("production", False)
    assert answer.data["evidence"]["progress"] == "first deployment, ready"
    assert [(row["name"], row["ok"]) for row in answer.data["checks"]] == [
        ("Promotion", True),
        ("Golden requests", False),
    ]


def test_the_approver_sees_the_evidence(world: World, signed_in: SignedIn) -> None:
    staged(world)
    change = request_production(world)

    shown = page(signed_in(world.lead).get(f"/approvals/{change.pk}"))

    assert "Results in staging" in shown.text
    assert "first deployment, ready" in shown.text
    assert shown.links["detector r1"] == "/vision/deployments/detector"


def test_the_page_leads_to_a_form_with_the_settings_of_staging(
    world: World, signed_in: SignedIn
) -> None:
    deployment = staged(world)
    client = signed_in(world.member)
    head = page(client.get("/vision/deployments/detector"))
    assert head.links["Promote to production"] == "/vision/deployments/detector/promote"

    shown = page(client.get("/vision/deployments/detector/promote"))
    link = shown.links["New deployment in production"]
    form = client.get(link)

    assert link == f"/vision/deployments/new?promoted_from={deployment.pk}"
    values = form.context["form"].data
    assert (values["environment"], values["memory"]) == ("production", "8Gi")
    assert values["version"] == str(world.version1.pk)


def test_the_page_says_why_a_promotion_is_not_possible(world: World, signed_in: SignedIn) -> None:
    staged(world)
    protect(world, golden_required=True)

    shown = page(signed_in(world.member).get("/vision/deployments/detector/promote"))

    assert "vision/detector has no golden requests." in shown.text
    assert "A request would be refused until the rules are met." in shown.text
    assert "New deployment in production" not in shown.links
