"""Stopping a rollout: abort, pause, and automatic ends."""

from __future__ import annotations

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Rollout
from deployments.rollouts.services import actions
from deployments.states import ChangeState, RolloutPhase
from fleet.kube.domain.errors import ObjectInvalid
from portal.core.errors import Conflict
from tests.deployments.canaries import STEPS, soak, start, view
from tests.deployments.world import World


def test_abort_sends_everything_back_then_removes_the_candidate(world: World) -> None:
    deployment, rollout = start(world)

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="looks wrong")
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert "detector-r2" in world.cluster.names("InferenceService"), "it drains first"
    soak(world, deployment, 16)
    world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTED
    assert rollout.phase_reason == "aborted: looks wrong"
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    change = ChangeRequest.objects.get(kind="canary")
    assert (change.state, change.state_reason) == (ChangeState.FAILED, "aborted: looks wrong")


def test_abort_reaches_the_gateway_even_when_the_candidate_cannot_be_pushed(world: World) -> None:
    deployment, rollout = start(world)
    del world.cluster.objects["InferenceService", "vision", "detector-r2"]
    world.cluster.refuse["InferenceService"] = ObjectInvalid("no")

    actions.abort(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_abort_while_the_old_revision_drains_swaps_back(world: World) -> None:
    deployment, rollout = start(world)
    shown = view(world, rollout)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert deployment.stable_revision.number == 2

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="p95 doubled")
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert deployment.stable_revision.number == 1
    soak(world, deployment, 16)
    world.reconcile_now(deployment)
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_a_finished_rollout_cannot_be_aborted(world: World) -> None:
    deployment, rollout = start(world)
    actions.abort(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)
    soak(world, deployment, 16)
    world.reconcile_now(deployment)

    with pytest.raises(Conflict, match="roll back"):
        actions.abort(actor=world.member, rollout_id=rollout.pk)


def test_a_candidate_that_is_not_ready_in_time_is_removed(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    world.reconcile_now(deployment)

    soak(world, deployment, 31 * 60)
    soak(world, deployment, 16)
    world.reconcile_now(deployment)

    rollout = Rollout.objects.get()
    assert rollout.phase == RolloutPhase.ABORTED
    assert "not ready in time" in rollout.phase_reason
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_a_crashing_candidate_loses_its_traffic_automatically(world: World) -> None:
    deployment, rollout = start(world)
    world.cluster.make_ready("detector-r2", is_ready=False, message="out of memory")
    world.reconcile_now(deployment)

    soak(world, deployment, 121)
    world.reconcile_now(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_pausing_stays_and_blocks_promotion_until_unpaused(world: World) -> None:
    deployment, rollout = start(world)
    actions.pause(actor=world.member, rollout_id=rollout.pk, reason="lunch")
    world.reconcile_now(deployment)
    shown = view(world, rollout)

    with pytest.raises(Conflict, match="Resume it first"):
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    assert world.cluster.weights("vision", "detector")["detector-r2-predictor"] == 10
    actions.unpause(actor=world.member, rollout_id=rollout.pk)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING


def test_pausing_while_preparing_moves_no_traffic(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    world.cluster.make_ready("detector-r2")

    world.reconcile_now(deployment)
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    actions.unpause(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector")["detector-r2-predictor"] == 10
