"""While a lead is at lunch: what guards decide automatically, and what they leave to people."""

from __future__ import annotations

import pytest

from deployments.lifecycle.services import wakeups
from deployments.models import Deployment, Rollout, RolloutEvent, RolloutVerdict
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from fleet.kube.domain.errors import Unreachable
from portal.core.errors import Conflict
from portal.notifications.models import Notice
from tests.deployments.canaries import send, soak, start, view
from tests.deployments.guarded_rollouts import begin, fill, interval, weights
from tests.deployments.world import World


def test_a_slow_candidate_is_aborted_in_the_pass_that_detects_it(world: World) -> None:
    deployment, _rollout = begin(world, is_calm=True)
    world.clock.move(10)
    passes = 0
    while Rollout.objects.get().phase == RolloutPhase.RUNNING:
        interval(world, deployment, latency_us=28_000)
        passes += 1
        assert passes < 60
    world.work()

    assert weights(world) == {"detector-r1-predictor": 100}
    event = RolloutEvent.objects.get(kind="aborting")
    assert event.actor_name == ""
    assert event.message.startswith(
        "aborted: mean latency: worse than allowed: +40% against stable"
    )
    # A block of means has at least ten requests of the candidate, which each reading brings.
    assert passes == 15
    assert Notice.objects.get(event="rollout.aborted").message == event.message


def test_a_good_candidate_waits_with_its_numbers_for_a_person(world: World) -> None:
    deployment, rollout = begin(world, is_calm=True)
    world.clock.move(60)
    for _ in range(20):
        interval(world, deployment)

    shown = view(world, rollout)
    assert (shown.is_promotable, rollout.phase) == (True, RolloutPhase.RUNNING)
    assert shown.guards[1].message == "0 of 200 requests failed; too few to judge yet"
    assert shown.guards[2].message.endswith("worse than the limit in 0 of 20 blocks")
    assert weights(world)["detector-r2-predictor"] == 10
    notice = Notice.objects.get(event="rollout.waits")
    assert notice.data["decide"]["evidence_hash"] == shown.evidence_hash


def test_verdicts_are_recorded_when_they_change_and_not_at_every_pass(world: World) -> None:
    deployment, _ = start(world)
    fill(world, deployment)
    for _ in range(5):
        world.clock.move(1)
        world.reconcile_now(deployment)

    kept = list(RolloutVerdict.objects.order_by("id"))

    assert [[guard["verdict"] for guard in row.guards] for row in kept] == [
        [*["not enough data"] * 3, "not known"],
        [*["pass"] * 3, "not known"],
    ]
    assert kept[-1].evidence_hash == Rollout.objects.get().evidence_hash


def test_numbers_that_vanish_take_back_what_they_allowed_and_abort_nothing(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    assert view(world, rollout).is_promotable

    soak(world, deployment, 40)

    shown = view(world, rollout)
    assert not shown.is_promotable
    assert shown.promotable_reason.startswith("no metrics from the candidate since ")
    assert {guard.verdict for guard in shown.guards[1:]} == {"not enough data", "not known"}
    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    with pytest.raises(Conflict, match="Cannot be promoted yet: no metrics"):
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)


def test_the_refusal_of_a_late_click_names_what_has_changed(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    shown = view(world, rollout)
    world.clock.move(31)

    with pytest.raises(Conflict) as refusal:
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert refusal.value.code == "evidence_changed"
    assert "error ratio: pass → not enough data (no metrics from the candidate" in (
        refusal.value.message
    )
    assert Deployment.objects.get().candidate_weight == 10


def test_a_bad_candidate_is_not_swapped_for_a_stable_revision_that_is_down(world: World) -> None:
    deployment, rollout = start(world)
    world.cluster.make_ready("detector-r1", is_ready=False, message="out of memory")
    world.reconcile_now(deployment)
    world.clock.move(20)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 50, failure=50)
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert view(world, rollout).guards[1].verdict == "fail"
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTING


def test_a_step_past_its_deadline_ends_and_says_which(world: World) -> None:
    steps = [{"weight": 10, "soak_seconds": 60, "min_requests": 100, "deadline_seconds": 300}]
    deployment, _rollout = begin(world, steps=steps)

    soak(world, deployment, 301)

    event = RolloutEvent.objects.get(kind="aborting")
    assert event.message == "aborted: step 1 was not promoted within 5 min"


def test_the_cluster_is_unreachable_in_the_middle_of_a_step(world: World) -> None:
    deployment, _rollout = start(world)
    world.cluster.fail_with = Unreachable("no route to host")
    world.clock.move(20)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 50, failure=50)
    world.reconcile_now(deployment)
    assert Rollout.objects.get().phase == RolloutPhase.ABORTING, "decided all the same"
    assert deployment.candidate_weight == 0

    world.cluster.fail_with = None
    world.clock.move(60)
    world.reconcile_now(deployment)
    assert weights(world) == {"detector-r1-predictor": 100}
    soak(world, deployment, 16)
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_a_reading_makes_the_rollouts_of_its_cluster_due(world: World) -> None:
    _deployment, _rollout = start(world)
    later = world.clock.at.replace(year=2030)
    Rollout.objects.update(next_check_at=later)

    wakeups.on_readings({world.cluster_id + 1})
    assert Rollout.objects.get().next_check_at == later
    wakeups.on_readings({world.cluster_id})

    assert Rollout.objects.get().next_check_at == world.clock.at


def test_what_was_sent_before_the_step_counts_for_its_guards_but_not_for_its_split(
    world: World,
) -> None:
    deployment, rollout = start(world)
    world.clock.move(-4)
    send(world, "detector-r1", 100)
    send(world, "detector-r2", 0)
    world.clock.move(7)
    send(world, "detector-r1", 100)
    send(world, "detector-r2", 20)
    world.reconcile_now(deployment)
    shown = view(world, rollout)
    assert (shown.candidate_requests, shown.observed_share) == (20, None)
    world.clock.move(5)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)

    world.reconcile_now(deployment)

    shown = view(world, rollout)
    assert (shown.candidate_requests, shown.observed_share) == (30, 0.1)
