"""The limit stands beside the templates; a lead changes it there."""

from __future__ import annotations

import pytest

from deployments.models import RolloutLimit
from tests.deployments.pages.test_rollout import SignIn
from tests.deployments.world import World
from tests.page import page

PAGE = "/admin/teams/vision/rollout-templates"
SET = "/admin/teams/vision/rollout-limit"


def test_a_lead_sets_how_far_rollouts_go_by_themselves(world: World, signed_in: SignIn) -> None:
    lead = signed_in(world.lead)
    assert "No limit" in lead.get(PAGE).content.decode()

    answer = lead.post(SET, {"percent": "25"})

    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert RolloutLimit.objects.get().percent == 25
    assert "up to a traffic weight of 25%" in page(lead.get(PAGE)).text
    assert SET not in signed_in(world.member).get(PAGE).content.decode()


@pytest.mark.parametrize(("typed", "status"), [("", 422), ("101", 422), ("-1", 422)])
def test_what_is_no_share_is_refused_at_the_field(
    world: World, signed_in: SignIn, typed: str, status: int
) -> None:
    answer = signed_in(world.lead).post(SET, {"percent": typed})

    assert (answer.status_code, RolloutLimit.objects.count()) == (status, 0)
    assert 'role="alert"' in answer.content.decode()


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("viewer", 403), ("stranger", 404)])
def test_others_change_no_limit(world: World, signed_in: SignIn, who: str, status: int) -> None:
    answer = signed_in(getattr(world, who)).post(SET, {"percent": "0"})

    assert (answer.status_code, RolloutLimit.objects.count()) == (status, 0)
