"""Promotions where the platform asks for a recent sign-in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from portal.accounts.local.step_up import StepUpRequired
from tests.deployments import canaries
from tests.deployments.refusals import refused
from tests.deployments.world import World


def test_a_promotion_takes_a_recent_sign_in(world: World, settings: Any) -> None:
    _, rollout = canaries.start(world)
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    evidence_hash = canaries.view(world, rollout).evidence_hash
    shown: dict[str, Any] = {"rollout_id": rollout.pk, "evidence_hash": evidence_hash}
    world.lead.authenticated_at = world.clock.at - timedelta(minutes=16)

    for promote in (actions.promote, actions.promote_fully):
        with refused(world, StepUpRequired):
            promote(actor=world.lead, **shown)
    with refused(world, StepUpRequired):
        actions.finish_watch(actor=world.lead, rollout_id=rollout.pk)

    world.lead.authenticated_at = world.clock.at
    assert actions.promote_fully(actor=world.lead, **shown).phase == RolloutPhase.PROMOTING


def test_stopping_takes_none(world: World, settings: Any) -> None:
    _, rollout = canaries.start(world)
    settings.SLIPWAY_STEP_UP_MINUTES = 15

    assert actions.pause(actor=world.lead, rollout_id=rollout.pk).phase == RolloutPhase.PAUSED
    assert actions.abort(actor=world.lead, rollout_id=rollout.pk).phase == RolloutPhase.ABORTING
