"""Automatic promotions and aborts, beside people who click too late or have paused."""

from __future__ import annotations

import pytest

from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Rollout, RolloutEvent
from deployments.rollouts.services import actions
from deployments.states import ChangeState, RolloutPhase
from portal.core.errors import Conflict
from tests.deployments.canaries import STEPS, send, start, view
from tests.deployments.guarded_rollouts import begin, fill, weights
from tests.deployments.world import World
from tests.rollout_plans import OF_SERVERS

AUTO = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100, "auto_promote": True},
    {"weight": 50, "soak_seconds": 60, "min_requests": 100, "deadline_seconds": 600},
]


def test_a_click_after_an_automatic_abort_is_refused(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    shown = view(world, rollout)
    world.clock.move(5)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 5, failure=100)
    world.reconcile_now(deployment)

    for act in (actions.promote, actions.promote_fully):
        with pytest.raises(Conflict) as refusal:
            act(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
        assert refusal.value.code == "rollout_phase"

    assert weights(world) == {"detector-r1-predictor": 100}


def test_an_approval_that_comes_too_late_starts_nothing(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.clock.move(15 * 24 * 3600)

    world.work()
    with pytest.raises(Conflict):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.EXPIRED
    assert not Rollout.objects.exists()


def test_an_auto_promoted_step_advances_when_all_guards_pass(
    world: World,
) -> None:
    deployment, _rollout = begin(world, steps=AUTO, guards=OF_SERVERS)
    world.clock.move(70)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)
    world.reconcile_now(deployment)
    assert weights(world)["detector-r2-predictor"] == 10, "too few requests"
    world.clock.move(5)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)

    world.reconcile_now(deployment)

    assert weights(world)["detector-r2-predictor"] == 50
    promoted = RolloutEvent.objects.filter(step_index=1).order_by("id").first()
    assert promoted is not None
    assert (promoted.message, promoted.actor_name) == (
        "promoted automatically, as approved with the plan 10 → 50%",
        "",
    )
    world.reconcile_now(deployment)
    assert Rollout.objects.get().step_index == 1, "the second step is left to a person"


def test_a_paused_rollout_does_not_auto_promote(world: World) -> None:
    deployment, rollout = begin(world, steps=AUTO, guards=OF_SERVERS)
    actions.pause(actor=world.member, rollout_id=rollout.pk, reason="lunch")

    fill(world, deployment)

    assert Rollout.objects.get().phase == RolloutPhase.PAUSED
    assert weights(world)["detector-r2-predictor"] == 10


def test_a_paused_candidate_that_fails_is_still_aborted(world: World) -> None:
    deployment, rollout = start(world)
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    world.clock.move(20)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 50, failure=50)

    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTING
    assert weights(world) == {"detector-r1-predictor": 100}
