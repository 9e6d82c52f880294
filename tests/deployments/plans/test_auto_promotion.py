"""The team's automatic promotion limit; a plan's figures are known before a request."""

from __future__ import annotations

from decimal import Decimal

import pytest
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout, RolloutLimit
from deployments.plans.services import auto_promotion
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests.deployments import canaries
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World
from tests.rollout_plans import OF_SERVERS

AUTO = [
    {"weight": 10, "soak_seconds": 0, "min_requests": 100, "auto_promote": True},
    {"weight": 50, "soak_seconds": 0, "min_requests": 100},
]
LIMIT = "/api/v1/teams/vision/rollout-limit"


def _client(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def _fill(world: World, deployment: Deployment) -> Rollout:
    world.clock.move(10)
    canaries.send(world, "detector-r1", 1800)
    canaries.send(world, "detector-r2", 200)
    world.reconcile_now(deployment)
    return Rollout.objects.get()


def test_a_limit_that_was_lowered_holds_for_what_is_under_way(world: World) -> None:
    deployment, _ = begin(world, steps=AUTO, guards=OF_SERVERS)
    auto_promotion.choose(actor=world.lead, team=world.team, percent=25)

    rollout = _fill(world, deployment)

    shown = canaries.view(world, rollout)
    assert (rollout.step_index, shown.is_promotable) == (0, True)
    assert [step.auto_promote for step in shown.steps] == [False, False]

    auto_promotion.choose(actor=world.lead, team=world.team, percent=50)
    world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.step_index == 1


def test_a_plan_beyond_the_limit_is_refused_and_nothing_is_written(world: World) -> None:
    deployment = world.serving()
    auto_promotion.choose(actor=world.lead, team=world.team, percent=25)

    with pytest.raises(Invalid) as refusal:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=AUTO,
        )

    assert "Step 1 would promote automatically to 50%" in refusal.value.fields["steps"]
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_only_who_may_promote_chooses_the_limit_and_it_is_audited(world: World) -> None:
    for actor in (world.member, world.viewer):
        with pytest.raises(Forbidden):
            auto_promotion.choose(actor=actor, team=world.team, percent=0)
    assert not RolloutLimit.objects.exists()

    lead = _client(world.lead)
    assert lead.get(LIMIT).json() == {"percent": 100}
    assert lead.put(LIMIT, {"percent": 25}, format="json").json() == {"percent": 25}
    assert lead.put(LIMIT, {"percent": 101}, format="json").status_code == 422

    assert _client(world.viewer).get(LIMIT).json() == {"percent": 25}
    assert _client(world.stranger).get(LIMIT).status_code == 404
    event = AuditEvent.objects.get(action="team.rollout_limit_set")
    assert (event.before, event.after) == ({"percent": 100}, {"percent": 25})


def test_time_and_dollars_of_a_plan_are_known_before_a_request(world: World) -> None:
    deployment = world.serving()
    address = f"/api/v1/deployments/{deployment.pk}/rollout-figures"
    before = ChangeRequest.objects.count()
    body = {
        "steps": [{"weight": 5, "soak_seconds": 7200, "min_requests": 0}],
        "plan": {"watch_seconds": 3600},
    }

    answer_body = _client(world.member).post(address, body, format="json").json()
    bad = _client(world.member).post(
        address, {"steps": [{"weight": 500, "soak_seconds": 0, "min_requests": 0}]}, format="json"
    )

    assert (answer_body["seconds"], answer_body["soak_seconds"]) == (7200, 7200)
    assert answer_body["steps"] == [
        {
            "weight": 5,
            "seconds": 7200,
            "waiting_for": "soak",
            "replicas": 1,
            "smallest_regression": None,
            "detection_seconds": None,
        }
    ]
    assert answer_body["watch_seconds"] == 3600
    assert Decimal(answer_body["watch_amount"]) == Decimal(answer_body["per_hour_amount"])
    assert Decimal(answer_body["total_amount"]) == 3 * Decimal(answer_body["per_hour_amount"])
    assert Decimal(answer_body["per_hour_amount"]) == Decimal("1.006")
    assert (bad.status_code, ChangeRequest.objects.count()) == (422, before)
    assert _client(world.stranger).post(address, body, format="json").status_code == 404
