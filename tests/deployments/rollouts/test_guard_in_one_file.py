"""A guard is one file and its line in the catalogue: form, REST, rollouts and pages follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.guards.domain import catalogue
from deployments.models import Rollout, RolloutTemplate
from deployments.plans.api.serializers import GuardLimitSerializer
from deployments.rollouts.services import reconcile
from deployments.states import RolloutPhase
from portal.accounts.models import User
from tests.deployments.canaries import send, view
from tests.deployments.guarded_rollouts import begin
from tests.deployments.guards import time_per_request
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
LIMIT: dict[str, Any] = {"metric": "time_per_request", "max_ratio": 1.25}
STEP = {"weight": 10, "soak_seconds": 60, "min_requests": 50}


def read(world: World, rollout: Rollout, *, latency_us: int) -> None:
    """One reading of both sides, then a tick of the rollout."""
    world.clock.move(5)
    send(world, "detector-r1", 900, latency_us=20_000)
    send(world, "detector-r2", 100, latency_us=latency_us)
    reconcile.advance(rollout_id=rollout.pk)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "KINDS", (*catalogue.KINDS, time_per_request.KIND))


def test_the_form_and_rest_have_it(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = APIClient()
    client.force_authenticate(world.lead)

    form = page(signed_in(world.member).get("/vision/deployments/detector/canary"))
    body = {"name": "careful", "steps": [STEP], "plan": {"guards": [LIMIT]}}
    made = client.post("/api/v1/teams/vision/rollout-templates", body, format="json")

    assert form.fields("time_per_request-max_ratio")
    assert "not compared: it depends on the traffic weight" in form.text
    assert "not compared: a peak grows with the time that a revision serves" in form.text
    assert "Time per request" in form.text
    assert "made up for a test" in form.text
    metric: Any = GuardLimitSerializer().fields["metric"]
    assert "time_per_request" in metric.choices
    assert made.status_code == 201
    [kept] = RolloutTemplate.objects.get().plan["guards"]
    assert (kept["max_ratio"], kept["ignore_below"]) == (1.25, 1.5), "with its own floor"


def test_a_limit_that_it_does_not_have_is_refused_by_its_name(world: World) -> None:
    client = APIClient()
    client.force_authenticate(world.lead)
    body = {"name": "x", "steps": [STEP], "plan": {"guards": [{**LIMIT, "max": 2000}]}}

    refused = client.post("/api/v1/teams/vision/rollout-templates", body, format="json")

    assert refused.status_code == 422
    assert "max of time_per_request must be more than 0 and at most 1000." in str(refused.json())
    assert not RolloutTemplate.objects.exists()


def test_a_rollout_is_aborted_by_it_and_the_page_says_why(world: World, signed_in: SignIn) -> None:
    _, rollout = begin(world, guards=[LIMIT])
    read(world, rollout, latency_us=20_000)
    before = view(world, rollout).guards[-1]
    for _ in range(25):
        read(world, rollout, latency_us=60_000)

    page = signed_in(world.lead).get("/vision/deployments/detector/rollout").content.decode()

    assert (before.guard, before.stable, before.candidate) == (
        "Time per request",
        "20.0 ms",
        "20.0 ms",
    )
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    [result] = [guard for guard in view(world, rollout).guards if guard.verdict == "fail"]
    assert (result.guard, result.candidate) == ("Time per request", "57.3 ms")
    assert result.message.startswith("worse than allowed: +")
    assert "Time per request" in page
    assert "made up for a test" in page
