"""Blue/green, steps that cannot be kept, and the checks before any traffic."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest, GoldenRun, Rollout
from deployments.rollouts.services import actions
from deployments.states import ProbePurpose, ProbeVerdict, RolloutPhase
from portal.core.errors import Invalid
from tests.deployments.canaries import STEPS, soak, view
from tests.deployments.guarded_rollouts import begin, weights
from tests.deployments.world import World


def test_blue_green_waits_without_traffic_then_takes_all(world: World) -> None:
    deployment, rollout = begin(world, steps=[], kind="blue-green", drain_seconds=60)
    assert rollout.phase == RolloutPhase.RUNNING
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"]
    assert weights(world) == {"detector-r1-predictor": 100}
    world.clock.move(5)
    world.reconcile_now(deployment)
    shown = view(world, rollout)
    assert shown.is_promotable
    assert shown.promotable_reason == "soak done, checked, no traffic yet"
    assert [guard.guard for guard in shown.guards] == ["Answers before traffic"]

    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert weights(world) == {"detector-r2-predictor": 100}
    soak(world, deployment, 30)
    assert "detector-r1" in world.cluster.names("InferenceService"), "kept for a minute"
    soak(world, deployment, 31)
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]


def test_blue_green_paused_without_traffic_restarts_its_check(world: World) -> None:
    deployment, rollout = begin(world, steps=[], kind="blue-green")
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)
    actions.unpause(actor=world.member, rollout_id=rollout.pk)

    world.reconcile_now(deployment)
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert weights(world) == {"detector-r1-predictor": 100}


@pytest.mark.parametrize(
    "steps",
    [
        [{"weight": 10, "soak_seconds": 0, "min_requests": 0}],
        [{"weight": 0, "soak_seconds": 0, "min_requests": 5}],
        [{"weight": 0, "soak_seconds": 0, "min_requests": 0}] * 2,
        ["zero-traffic"],
    ],
)
def test_blue_green_takes_no_steps_with_traffic(world: World, steps: list[Any]) -> None:
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=steps,
            plan={"kind": "blue-green"},
        )

    assert {path.partition(".")[0] for path in refusal.value.fields} == {"steps"}
    assert not ChangeRequest.objects.filter(kind="canary").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"auto_promote": 1},
        {"auto_promote": True, "min_requests": 5},
        {"deadline_seconds": 60},
        {"deadline_seconds": "soon"},
        {"weight": 0},
        {"speed": 1},
    ],
)
def test_steps_that_cannot_be_kept_are_refused(world: World, changed: dict[str, Any]) -> None:
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{**STEPS[0], **changed}],
        )

    assert {path.partition(".")[0] for path in refusal.value.fields} == {"steps"}


@pytest.mark.parametrize(
    ("verdict", "phase", "message"),
    [
        (ProbeVerdict.WAITING, RolloutPhase.PREPARING, "before traffic: 1 of 3 answered"),
        (ProbeVerdict.FAILED, RolloutPhase.ABORTED, "aborted: before traffic: 1 of 3 answered"),
        (ProbeVerdict.PASSED, RolloutPhase.RUNNING, None),
    ],
)
def test_no_traffic_before_the_answers_were_checked(
    world: World, verdict: ProbeVerdict, phase: RolloutPhase, message: str | None
) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()
    GoldenRun.objects.create(
        rollout=rollout,
        purpose=ProbePurpose.BEFORE_TRAFFIC,
        verdict=verdict,
        message="1 of 3 answered",
        created_at=world.clock.at,
    )
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    for _ in range(3):
        soak(world, deployment, 16)

    rollout.refresh_from_db()
    assert rollout.phase == phase
    assert message is None or rollout.phase_reason == message
    has_traffic = weights(world).get("detector-r2-predictor", 0) > 0
    assert has_traffic == (verdict == ProbeVerdict.PASSED)
