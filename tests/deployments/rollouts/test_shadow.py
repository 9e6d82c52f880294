"""A shadow: the gateway copies requests to the candidate, and users only get answers of stable."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.selectors import statistics
from deployments.states import ChangeState, RolloutPhase
from fleet.models import Cluster
from portal.core.errors import Invalid
from portal.notifications.models import Notice
from tests.deployments.canaries import send, soak, view
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

STEPS = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]
MIRRORING = ("kubernetes", "kserve", "gateway-api", "request-mirror")


def let_mirror(*features: str) -> None:
    offered = {name: {"is_there": name in features} for name in MIRRORING}
    Cluster.objects.update(capabilities={"features": offered})


def request_shadow(world: World, deployment: Deployment, **changed: Any) -> ChangeRequest:
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        **{"steps": STEPS, "plan": {**AT_ONCE, "kind": "shadow"}, **changed},
    )


def begin(world: World) -> tuple[Deployment, Rollout]:
    return world.play("shadow", lambda: _begin(world))


def _begin(world: World) -> tuple[Deployment, Rollout]:
    let_mirror(*MIRRORING)
    deployment = world.serving()
    world.approved(request_shadow(world, deployment))
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def fill(world: World, deployment: Deployment, *, copies: int = 100, failure: int = 0) -> None:
    """What the first step requires: all requests at stable, a tenth mirrored to the candidate."""
    world.clock.move(111)
    send(world, "detector-r1", 1000)
    send(world, "detector-r2", copies - failure, failure=failure)
    world.reconcile_now(deployment)


def routed(world: World) -> tuple[dict[str, int], dict[str, int]]:
    return (
        world.cluster.weights("vision", "detector"),
        world.cluster.mirrors("vision", "detector"),
    )


STABLE = {"detector-r1-predictor": 100}


def test_copies_rise_by_steps_until_a_lead_lets_users_have_its_answers(world: World) -> None:
    deployment, rollout = begin(world)
    assert routed(world) == (STABLE, {"detector-r2-predictor": 10})
    assert (deployment.candidate_weight, deployment.candidate_mirror) == (0, 10)
    assert (deployment.observed_weight, deployment.observed_mirror) == (0, 10)
    fill(world, deployment)
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    assert shown.next_text == "mirror 10 → 50%"
    assert shown.observed_share == 0.1
    split = shown.guards[0]
    assert (split.guard, split.verdict) == ("Mirrored requests", "pass")
    assert split.message == (
        "100 of 1,000 requests that stable answered were mirrored to the candidate; 10% requested"
    )
    waits = Notice.objects.filter(event="rollout.waits").latest("id")
    assert waits.message.startswith("At 10% mirrored: ")

    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    deployment = world.reconcile_now(deployment)
    assert routed(world) == (STABLE, {"detector-r2-predictor": 50})
    world.clock.move(5)
    send(world, "detector-r1", 1000)
    send(world, "detector-r2", 500)
    world.reconcile_now(deployment)
    last = view(world, rollout)
    assert (last.next_text, last.is_promotable) == ("to all users", True)

    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=last.evidence_hash)
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert routed(world) == ({"detector-r2-predictor": 100}, {})
    soak(world, deployment, 16)
    deployment = world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED
    assert deployment.stable_revision.number == 2
    assert world.cluster.names("InferenceService") == ["detector-r2"]


def test_a_failing_shadow_is_aborted_and_the_message_says_users_were_not_affected(
    world: World,
) -> None:
    deployment, rollout = begin(world)

    fill(world, deployment, failure=90)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    said = rollout.events.get(kind="aborting").message
    assert "90 of 100 mirrored requests failed" in said
    assert said.endswith("; users only got answers from the stable revision")
    assert routed(world) == (STABLE, {})
    assert "detector-r2" in world.cluster.names("InferenceService"), "removed before it is drained"
    soak(world, deployment, 16)
    world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.FAILED


def test_copies_are_not_counted_as_requests_of_users(world: World) -> None:
    deployment, _ = begin(world)
    fill(world, deployment, failure=5)

    shown = deployment_selectors.get_visible(
        actor=world.member, team_slug="vision", name=deployment.name
    )
    stats = statistics.by_revision(shown)

    assert stats.total is not None
    assert stats.total.error_ratio == 0
    assert [revision.stats.error_ratio for revision in stats.revisions if revision.stats] == [
        0,
        0.05,
    ]


def test_a_mirror_percentage_off_its_request_raises_an_alarm_and_blocks(world: World) -> None:
    deployment, rollout = begin(world)

    fill(world, deployment, copies=400)

    shown = view(world, rollout)
    assert shown.rollout.phase == RolloutPhase.RUNNING
    assert not shown.is_promotable
    assert shown.promotable_reason == "failing: mirrored requests. Abort, or wait."
    assert Notice.objects.filter(event="rollout.alarm").exists()


def test_pause_keeps_the_mirror_and_abort_ends_it_first(world: World) -> None:
    deployment, rollout = begin(world)
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)
    assert routed(world) == (STABLE, {"detector-r2-predictor": 10})
    actions.unpause(actor=world.member, rollout_id=rollout.pk)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.RUNNING

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="enough")

    deployment.refresh_from_db()
    assert (deployment.candidate_weight, deployment.candidate_mirror) == (0, 0)
    world.reconcile_now(deployment)
    assert routed(world) == (STABLE, {})
    assert "detector-r2" in world.cluster.names("InferenceService")


def test_where_the_gateway_cannot_mirror_a_shadow_is_refused_with_a_message(world: World) -> None:
    let_mirror("kubernetes", "kserve", "gateway-api")
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        request_shadow(world, deployment)

    assert refusal.value.fields == {
        "kind": "Request mirroring is not installed. It is needed for shadow rollouts."
    }
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_the_last_step_of_a_shadow_never_promotes_itself(world: World) -> None:
    let_mirror(*MIRRORING)
    deployment = world.serving()
    steps = [{"weight": 50, "soak_seconds": 0, "min_requests": 20, "auto_promote": True}]

    with pytest.raises(Invalid, match="needs manual promotion"):
        request_shadow(world, deployment, steps=steps)

    assert not ChangeRequest.objects.filter(kind="canary").exists()
