"""A canary from request to completion or back, with real rows and a recording cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployments.domain.states import ChangeState, DeploymentState, RolloutPhase
from deployments.models import ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.selectors import rollouts as rollout_selectors
from deployments.services import changes, rollouts
from fleet.domain.cluster_errors import ObjectInvalid
from fleet.models import MetricSample, Pod, Workload
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.deployments.delivery.conftest import World

STEPS = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]


def start(world: World, steps=STEPS) -> tuple[Deployment, Rollout]:
    """A serving deployment whose canary gets its first step's weight."""
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=steps
    )
    world.approved(change)
    world.look(deployment)
    world.cluster.make_ready("detector-r2")
    world.look(deployment)
    return world.look(deployment), Rollout.objects.get()


def send(world: World, name: str, success: int, failure: int = 0, latency_us: int = 4000) -> None:
    """Readings of one pod: nothing at the step's begin, then so many requests."""
    workload = Workload.objects.get(name=name)
    at = world.clock.at
    pod, _ = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid=name,
        defaults={
            "workload": workload,
            "namespace": "vision",
            "name": name,
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
        },
    )
    last = MetricSample.objects.filter(pod=pod).order_by("-at").first()
    old = last.request_success if last else 0
    start_at = at - timedelta(seconds=1)
    MetricSample.objects.create(pod=pod, at=start_at, request_success=old)
    MetricSample.objects.create(
        pod=pod,
        at=at,
        request_success=old + success,
        request_failure=failure,
        request_duration_us=success * latency_us,
    )


def view(world: World, rollout: Rollout):
    fresh = rollout_selectors.get_visible(actor=world.lead, rollout_id=rollout.pk)
    return rollout_selectors.view_of(actor=world.lead, rollout=fresh)


def soak(world: World, deployment: Deployment, seconds: float = 61) -> None:
    world.clock.move(seconds)
    world.look(deployment)


def test_the_candidate_gets_its_share_only_when_it_is_ready(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    world.look(deployment)
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}

    world.cluster.make_ready("detector-r2")
    world.look(deployment)
    world.look(deployment)

    assert world.cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 90,
        "detector-r2-predictor": 10,
    }
    rollout = Rollout.objects.get()
    assert rollout.phase == RolloutPhase.RUNNING
    assert rollout.step_started_at == world.clock.at
    assert deployment.observed_weight == 10
    assert deployment.state == DeploymentState.READY


def test_a_lead_promotes_each_step_and_the_old_revision_drains(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(50)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    soak(world, deployment)
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    assert (shown.stable_requests, shown.candidate_requests) == (900, 100)
    assert shown.observed_share == 0.1
    assert shown.next_weight == 50
    assert [guard.verdict for guard in shown.guards] == ["pass", "pass", "pass"]

    rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.look(deployment)
    world.look(deployment)
    assert world.cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 50,
        "detector-r2-predictor": 50,
    }
    shown = view(world, rollout)
    rollouts.promote(actor=world.lead2, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.look(deployment)
    world.look(deployment)
    assert world.cluster.weights("vision", "detector") == {"detector-r2-predictor": 100}
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"], "draining"

    soak(world, deployment, 16)
    world.look(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    assert deployment.stable_revision.number == 2
    assert deployment.candidate_revision is None
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.DONE
    assert Workload.objects.get(name="detector-r1").retired_at is not None


def test_a_failing_candidate_cannot_be_promoted(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(50)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 80, failure=40)
    soak(world, deployment)
    shown = view(world, rollout)

    for act in (rollouts.promote, rollouts.promote_fully):
        with pytest.raises(Conflict) as refusal:
            act(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
        assert refusal.value.code == "not_promotable"

    assert not shown.is_promotable
    assert Deployment.objects.get().candidate_weight == 10
    assert not AuditEvent.objects.filter(action__startswith="rollout.promoted").exists()


def test_too_little_traffic_waits_and_says_so(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(50)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)

    soak(world, deployment)

    shown = view(world, rollout)
    assert not shown.is_promotable
    assert shown.promotable_reason == "10 of 100 requests so far"


def test_missing_metrics_neither_promote_nor_abort(world: World) -> None:
    deployment, rollout = start(world)

    soak(world, deployment, 3600)

    shown = view(world, rollout)
    assert shown.promotable_reason == "the candidate's requests are not known"
    assert shown.candidate_requests is None
    assert Rollout.objects.get().phase == RolloutPhase.RUNNING


def test_a_verdict_that_turned_since_it_was_shown_refuses_the_click(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(50)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    soak(world, deployment)
    shown = view(world, rollout)
    world.clock.move(5)
    send(world, "detector-r2", 5, failure=500)

    with pytest.raises(Conflict) as refusal:
        rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert refusal.value.code == "evidence_changed"
    assert Deployment.objects.get().candidate_weight == 10
    assert view(world, rollout).evidence_hash != shown.evidence_hash


def test_of_two_leads_who_click_at_once_one_wins(world: World, monkeypatch) -> None:
    steps = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}, STEPS[1]]
    deployment, rollout = start(world, steps)
    world.look(deployment)
    shown = view(world, rollout)
    from deployments.services import analysis

    original = analysis.store

    def other_lead_first(row, found):
        original(row, found)
        monkeypatch.setattr(analysis, "store", original)
        rollouts.promote(actor=world.lead2, rollout_id=row.pk, evidence_hash=shown.evidence_hash)

    monkeypatch.setattr(analysis, "store", other_lead_first)
    with pytest.raises(Conflict) as refusal:
        rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert refusal.value.message == "Someone else moved the rollout a moment ago. Look again."
    promoted = AuditEvent.objects.filter(action="rollout.promoted")
    assert [event.actor_name for event in promoted] == ["lead2"]
    assert Rollout.objects.get().step_index == 1


def test_abort_sends_everything_back_then_removes_the_candidate(world: World) -> None:
    deployment, rollout = start(world)

    rollouts.abort(actor=world.member, rollout_id=rollout.pk, reason="looks wrong")
    world.look(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert "detector-r2" in world.cluster.names("InferenceService"), "it drains first"
    soak(world, deployment, 16)
    world.look(deployment)
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

    rollouts.abort(actor=world.member, rollout_id=rollout.pk)
    world.look(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_abort_while_the_old_revision_drains_swaps_back(world: World) -> None:
    deployment, rollout = start(world)
    shown = view(world, rollout)
    rollouts.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    world.look(deployment)
    world.look(deployment)
    assert deployment.stable_revision.number == 2

    rollouts.abort(actor=world.member, rollout_id=rollout.pk, reason="p95 doubled")
    world.look(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert deployment.stable_revision.number == 1
    soak(world, deployment, 16)
    world.look(deployment)
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_a_finished_rollout_cannot_be_aborted(world: World) -> None:
    deployment, rollout = start(world)
    rollouts.abort(actor=world.member, rollout_id=rollout.pk)
    world.look(deployment)
    soak(world, deployment, 16)
    world.look(deployment)

    with pytest.raises(Conflict, match="roll back"):
        rollouts.abort(actor=world.member, rollout_id=rollout.pk)


def test_a_candidate_that_is_not_ready_in_time_is_removed(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    world.look(deployment)

    soak(world, deployment, 31 * 60)
    soak(world, deployment, 16)
    world.look(deployment)

    rollout = Rollout.objects.get()
    assert rollout.phase == RolloutPhase.ABORTED
    assert "not ready in time" in rollout.phase_reason
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_a_candidate_that_falls_over_loses_its_traffic_by_itself(world: World) -> None:
    deployment, rollout = start(world)
    world.cluster.make_ready("detector-r2", is_ready=False, message="out of memory")
    world.look(deployment)

    soak(world, deployment, 121)
    world.look(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_pausing_stays_and_blocks_promotion_until_unpaused(world: World) -> None:
    deployment, rollout = start(world)
    rollouts.pause(actor=world.member, rollout_id=rollout.pk, reason="lunch")
    world.look(deployment)
    shown = view(world, rollout)

    with pytest.raises(Conflict, match="Unpause it first"):
        rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    assert world.cluster.weights("vision", "detector")["detector-r2-predictor"] == 10
    rollouts.unpause(actor=world.member, rollout_id=rollout.pk)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING


def test_pausing_while_preparing_moves_no_traffic(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()
    rollouts.pause(actor=world.member, rollout_id=rollout.pk)
    world.cluster.make_ready("detector-r2")

    world.look(deployment)
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    rollouts.unpause(actor=world.member, rollout_id=rollout.pk)
    world.look(deployment)

    assert world.cluster.weights("vision", "detector")["detector-r2-predictor"] == 10


def test_the_requester_may_not_promote_their_own_canary(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.lead2, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()

    with pytest.raises(Forbidden) as refusal:
        rollouts.promote(actor=world.lead2, rollout_id=rollout.pk, evidence_hash="")

    assert refusal.value.code == "four_eyes"


def test_rolling_back_serves_the_old_version_as_a_new_revision(world: World) -> None:
    deployment, rollout = start(world)
    shown = view(world, rollout)
    rollouts.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    assert deployment.stable_revision.number == 2

    change = changes.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=1
    )
    world.approved(change)
    world.look(deployment)
    world.cluster.make_ready("detector-r3")
    for _ in range(3):
        soak(world, deployment, 16)

    assert deployment.stable_revision.number == 3
    assert deployment.stable_revision.version == world.version1
    assert world.cluster.names("InferenceService") == ["detector-r3"]
    assert world.cluster.weights("vision", "detector") == {"detector-r3-predictor": 100}
    change.refresh_from_db()
    assert change.state == ChangeState.DONE


def test_another_model_or_bad_steps_are_refused_with_the_field(world: World) -> None:
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        changes.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{"weight": 50, "soak_seconds": 0, "min_requests": 0}] * 2,
        )

    assert "rise" in refusal.value.fields["steps"]
    assert ChangeRequest.objects.filter(kind="canary").count() == 0


def test_the_histories_tell_who_moved_it(world: World) -> None:
    _, rollout = start(world)
    rollouts.abort(actor=world.member, rollout_id=rollout.pk, reason="no")

    kinds = list(RolloutEvent.objects.order_by("id").values_list("kind", "actor_name"))

    assert kinds == [
        ("started", ""),
        ("preparing", ""),
        ("running", ""),
        ("aborting", "member"),
    ]
