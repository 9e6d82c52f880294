"""After promotion the guards go on while the old revision is warm: a failure rolls back to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.models import Alias, ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.rollouts.services import actions, transitions
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden
from portal.notifications.models import Notice
from tests.deployments.canaries import send, serve, soak, view
from tests.deployments.guarded_rollouts import begin, weights
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World
from tests.page import page

__all__ = ["signed_in"]
ONLY_NEW = {"detector-r2-predictor": 100}
ONLY_OLD = {"detector-r1-predictor": 100}
BOTH = ["detector-r1", "detector-r2"]
STEPS = [{"weight": 50, "soak_seconds": 0, "min_requests": 20}]
SignIn = Callable[[User], Client]


def watched(world: World, seconds: int = 600) -> tuple[Deployment, Rollout]:
    """A rollout that a lead has promoted, at the beginning of its watch."""
    return world.play(f"watched {seconds}", lambda: _promote(world, seconds))


def _promote(world: World, seconds: int) -> tuple[Deployment, Rollout]:
    deployment, rollout = begin(world, steps=STEPS, watch_seconds=seconds, move_alias="champion")
    for _ in range(2):
        serve(world, deployment, 50)
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    for _ in range(3):
        world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.WATCHING
    return deployment, rollout


def fail(world: World, deployment: Deployment) -> None:
    """Half of the requests of the next seconds."""
    for _ in range(3):
        world.clock.move(5)
        send(world, "detector-r2", 500, failure=500)
        world.reconcile_now(deployment)


def test_the_old_revision_stays_warm_until_the_watch_is_over(world: World) -> None:
    deployment, rollout = watched(world)
    assert rollout.watch_until == world.clock.at + timedelta(seconds=600)
    assert (weights(world), world.cluster.names("InferenceService")) == (ONLY_NEW, BOTH)
    for _ in range(2):
        serve(world, deployment, 100)
    shown = view(world, rollout)
    guards = {guard.guard: guard for guard in shown.guards}
    assert {guard.verdict for guard in guards.values()} == {"pass", "not known"}, "no gateway"
    assert guards["Mean latency"].stable == "4.0 ms before"
    assert (shown.is_promotable, shown.requested_weight, shown.observed_weight) == (False, 100, 100)
    assert shown.earliest_finish_at == rollout.watch_until
    assert not Alias.objects.exists(), "it points to what passed its watch"

    soak(world, deployment, 560)
    assert Rollout.objects.get().phase == RolloutPhase.WATCHING
    soak(world, deployment, 35)
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    assert Alias.objects.get().version == world.version2
    assert ChangeRequest.objects.get(kind="canary").state == "done"


def test_a_failure_rolls_back_by_itself(world: World) -> None:
    deployment, rollout = watched(world)

    fail(world, deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert weights(world) == ONLY_OLD
    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message.startswith("aborted: error ratio: worse than allowed")
    assert aborted.data["evidence"]
    assert Notice.objects.filter(event="rollout.aborted").count() == 1
    for _ in range(3):
        soak(world, deployment, 16)
    assert Rollout.objects.get().phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert deployment.stable_revision.number == 1
    assert not Alias.objects.exists()
    assert ChangeRequest.objects.get(kind="canary").state == "failed"


def test_nothing_goes_back_to_an_old_revision_that_is_down(world: World) -> None:
    deployment, rollout = watched(world)
    world.cluster.make_ready("detector-r1", is_ready=False, message="out of memory")
    world.reconcile_now(deployment)

    fail(world, deployment)

    rollout.refresh_from_db()
    assert (rollout.phase, weights(world)) == (RolloutPhase.WATCHING, ONLY_NEW)
    assert "failing: error ratio" in view(world, rollout).promotable_reason


def test_a_lead_finishes_it_early_and_only_once(world: World) -> None:
    deployment, rollout = watched(world)
    for other, refusal in ((world.member, Forbidden), (world.viewer, Forbidden)):
        with pytest.raises(refusal):
            actions.finish_watch(actor=other, rollout_id=rollout.pk)
    assert Rollout.objects.get().watch_until == rollout.watch_until

    actions.finish_watch(actor=world.lead, rollout_id=rollout.pk)
    with pytest.raises(Conflict) as again:
        actions.finish_watch(actor=world.lead2, rollout_id=rollout.pk)
    fail(world, deployment)
    world.reconcile_now(deployment)

    assert again.value.code == "rollout_moved"
    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED, "drained since it was promoted"
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    ended = AuditEvent.objects.get(action="rollout.watch_ended")
    assert (ended.actor_name, ended.after["phase"]) == ("lead", "watching")
    assert RolloutEvent.objects.filter(message__startswith="watch ended early").count() == 1


def test_a_member_rolls_back_while_it_is_warm(world: World) -> None:
    deployment, rollout = watched(world)

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="wrong labels")
    world.reconcile_now(deployment)

    assert weights(world) == ONLY_OLD
    assert Rollout.objects.get().phase == RolloutPhase.ABORTING


def test_blue_green_is_watched_beside_the_hour_before(world: World) -> None:
    deployment, rollout = begin(world, steps=[], kind="blue-green", watch_seconds=300)
    for _ in range(2):
        serve(world, deployment, 0)
    shown = view(world, rollout)
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    for _ in range(3):
        world.reconcile_now(deployment)
    serve(world, deployment, 100)

    guards = {guard.guard: guard for guard in view(world, rollout).guards}

    assert Rollout.objects.get().phase == RolloutPhase.WATCHING
    assert guards["Mean latency"].stable == "4.0 ms before"
    assert guards["Error ratio"].verdict == "pass"


def test_a_drain_that_takes_longer_than_the_watch_is_not_cut(world: World) -> None:
    _, rollout = begin(world, steps=STEPS, watch_seconds=60, drain_seconds=7200)
    plan = view(world, rollout).plan

    for phase in (RolloutPhase.WATCHING, RolloutPhase.PROMOTING, RolloutPhase.ABORTING):
        assert transitions.deadline_seconds(plan, phase, 0) > 7200


def test_the_page_and_rest_say_so(world: World, signed_in: SignIn) -> None:
    _, rollout = watched(world)
    address = "/vision/deployments/detector/rollout"

    shown = page(signed_in(world.lead).get(address))
    as_member = page(signed_in(world.member).get(address))
    client = APIClient()
    client.force_authenticate(world.lead)
    answer = client.get(f"/api/v1/rollouts/{rollout.pk}").json()

    assert "detector:2 is stable and serves all requests. Watched until" in shown.text
    assert "r1 stays warm without traffic, and a failing guard rolls back to it." in shown.text
    assert ("Finish now" in shown.text, "Finish now" in as_member.text) == (True, False)
    assert "Roll back" in as_member.text
    assert "Promoted · watched, old revision warm" in shown.text
    assert (answer["phase"], answer["watch_until"]) == (
        "watching",
        f"{rollout.watch_until:%Y-%m-%dT%H:%M:%S.%f}Z",
    )
    pressed = signed_in(world.lead).post(address, {"action": "finish_watch"})
    assert pressed.status_code == 302
    assert Rollout.objects.get().watch_until == world.clock.at
