"""A canary from request to completion or back, with real rows and a recording cluster."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import actions
from deployments.states import ChangeState, DeploymentState, RolloutPhase
from fleet.models import Workload
from fleet.telemetry.services import poll
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.deployments.canaries import STEPS, send, serve, soak, start, view
from tests.deployments.world import World


def test_the_candidate_gets_its_share_only_when_it_is_ready(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    world.reconcile_now(deployment)
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}

    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 90,
        "detector-r2-predictor": 10,
    }
    rollout = Rollout.objects.get()
    assert rollout.phase == RolloutPhase.RUNNING
    assert rollout.step_started_at == world.clock.at
    assert deployment.observed_weight == 10
    assert deployment.state == DeploymentState.READY


def test_both_sides_are_read_as_soon_as_a_step_begins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls: list[dict[str, object]] = []
    monkeypatch.setattr(poll, "poll_soon", lambda **where: polls.append(where))

    _, rollout = start(world)

    both = ["detector-r1", "detector-r2"]
    assert rollout.step_started_at == world.clock.at
    assert polls == [{"cluster_id": world.cluster_id, "namespace": "vision", "names": both}]


def test_a_lead_promotes_each_step_and_the_old_revision_drains(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    assert (shown.stable_requests, shown.candidate_requests) == (900, 100)
    assert shown.observed_share == 0.1
    assert shown.next_weight == 50
    assert [guard.verdict for guard in shown.guards] == ["pass", "pass", "pass", "not known"]

    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    moved = view(world, rollout)
    assert (moved.is_promotable, moved.candidate_requests, moved.observed_share) == (
        False,
        None,
        None,
    ), "what the last step showed says nothing of this one"
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert world.cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 50,
        "detector-r2-predictor": 50,
    }
    serve(world, deployment, 50)
    shown = view(world, rollout)
    actions.promote(actor=world.lead2, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert world.cluster.weights("vision", "detector") == {"detector-r2-predictor": 100}
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"], "draining"

    soak(world, deployment, 16)
    world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]
    assert deployment.stable_revision.number == 2
    assert deployment.candidate_revision is None
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.DONE
    assert Workload.objects.get(name="detector-r1").retired_at is not None


@pytest.mark.parametrize(
    ("address", "event"),
    [
        ("promote", "promoted 10 → 50%: p95 looks right"),
        ("promote-fully", "promoted to all requests: p95 looks right"),
    ],
)
def test_the_comment_of_a_promotion_stands_in_the_timeline_and_the_audit_trail(
    world: World, address: str, event: str
) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    body = {"evidence_hash": view(world, rollout).evidence_hash}
    client = APIClient()
    client.force_authenticate(world.lead)
    path = f"/api/v1/rollouts/{rollout.pk}/{address}"

    long = client.post(path, {**body, "comment": "x" * 501}, format="json")
    done = client.post(path, {**body, "comment": "p95 looks right "}, format="json")

    assert (long.status_code, [e["field"] for e in long.data["errors"]]) == (422, ["comment"])
    assert done.status_code == 200, done.data
    assert RolloutEvent.objects.filter(message=event).count() == 1
    audited = AuditEvent.objects.get(action__startswith="rollout.promoted")
    assert audited.reason == "p95 looks right"


def test_a_failing_candidate_is_aborted_automatically_with_the_reason(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 80, failure=40)
    world.reconcile_now(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert Deployment.objects.get().candidate_weight == 0
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message == "aborted: error ratio: worse than allowed: 40 of 120 requests failed"
    verdicts = [guard["verdict"] for guard in aborted.data["evidence"]]
    assert verdicts == ["pass", "fail", "pass", "not known"]
    assert not AuditEvent.objects.filter(action__startswith="rollout.promoted").exists()


def test_a_wrong_split_blocks_promotion_but_is_not_the_candidates_fault(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 500)
    send(world, "detector-r2", 500)
    world.reconcile_now(deployment)
    shown = view(world, rollout)

    for act in (actions.promote, actions.promote_fully):
        with pytest.raises(Conflict) as refusal:
            act(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
        assert refusal.value.code == "not_promotable"

    assert shown.guards[0].message == (
        "the candidate got 500 of 1,000 requests; 10% requested, so the split is not as requested"
    )
    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert Deployment.objects.get().candidate_weight == 10


def test_too_little_traffic_waits_and_says_so(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)

    world.reconcile_now(deployment)

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


def test_a_verdict_changed_since_it_was_shown_refuses_the_click(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    shown = view(world, rollout)
    world.clock.move(5)
    send(world, "detector-r2", 5, failure=500)

    with pytest.raises(Conflict) as refusal:
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert refusal.value.code == "evidence_changed"
    assert Deployment.objects.get().candidate_weight == 10
    assert view(world, rollout).evidence_hash != shown.evidence_hash


def test_of_two_leads_who_click_at_once_one_wins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}, STEPS[1]]
    deployment, rollout = start(world, steps)
    serve(world, deployment, 10)
    shown = view(world, rollout)
    from deployments.rollouts.services import evidence

    original = evidence.store

    def other_lead_first(snapshot: RolloutSnapshot, analysis: Any) -> None:
        original(snapshot, analysis)
        monkeypatch.setattr(evidence, "store", original)
        rollout_id = snapshot.rollout.pk
        actions.promote(actor=world.lead2, rollout_id=rollout_id, evidence_hash=shown.evidence_hash)

    monkeypatch.setattr(evidence, "store", other_lead_first)
    with pytest.raises(Conflict) as refusal:
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert (
        refusal.value.message == "Someone else moved the rollout at the same time. Reload the page."
    )
    promoted = AuditEvent.objects.filter(action="rollout.promoted")
    assert [event.actor_name for event in promoted] == ["lead2"]
    assert Rollout.objects.get().step_index == 1


def test_the_requester_may_not_promote_their_own_canary(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.lead2, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()

    with pytest.raises(Forbidden) as refusal:
        actions.promote(actor=world.lead2, rollout_id=rollout.pk, evidence_hash="")

    assert refusal.value.code == "four_eyes"


def test_rolling_back_serves_the_old_revision_under_its_number(world: World) -> None:
    deployment, rollout = start(world)
    shown = view(world, rollout)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    assert deployment.stable_revision.number == 2

    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=1
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r1")
    for _ in range(3):
        soak(world, deployment, 16)

    assert deployment.stable_revision.number == 1
    assert deployment.stable_revision.version == world.version1
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    change.refresh_from_db()
    assert change.state == ChangeState.DONE


def test_another_model_or_bad_steps_are_refused_with_the_field(world: World) -> None:
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{"weight": 50, "soak_seconds": 0, "min_requests": 0}] * 2,
        )

    assert "increase" in refusal.value.fields["steps"]
    assert ChangeRequest.objects.filter(kind="canary").count() == 0


def test_the_histories_name_who_moved_it(world: World) -> None:
    _, rollout = start(world)
    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="no")

    kinds = list(RolloutEvent.objects.order_by("id").values_list("kind", "actor_name"))

    assert kinds == [
        ("started", ""),
        ("preparing", ""),
        ("running", ""),
        ("aborting", "member"),
    ]
