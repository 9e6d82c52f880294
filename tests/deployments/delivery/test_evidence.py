"""While a lead is at lunch: what the evidence does by itself, and what it leaves to people."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.domain.golden import ProbePurpose, ProbeVerdict
from deployments.domain.states import ChangeState, RolloutPhase
from deployments.models import (
    Alias,
    ChangeRequest,
    Deployment,
    GoldenRun,
    Rollout,
    RolloutEvent,
    RolloutVerdict,
)
from deployments.services import aliases, changes, hearing, rollout_steps, rollouts
from fleet.domain.cluster_errors import Unreachable
from portal.core.errors import Conflict, Invalid
from portal.notifications.models import Notice
from tests.deployments.delivery.canaries import STEPS, send, soak, start, view
from tests.deployments.delivery.conftest import World

AUTO = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 100, "auto_promote": True},
    {"weight": 50, "soak_seconds": 60, "min_requests": 100, "deadline_seconds": 600},
]


def begin(world: World, *, steps: Any = STEPS, **plan: Any) -> tuple[Deployment, Rollout]:
    """As `start`, with a plan of its own."""
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=steps,
        plan=plan,
    )
    world.approved(change)
    world.look(deployment)
    world.cluster.make_ready("detector-r2")
    world.look(deployment)
    return world.look(deployment), Rollout.objects.get()


def interval(world: World, deployment: Deployment, *, latency_us: int = 20_000) -> None:
    """Five seconds of both sides, then a look."""
    world.clock.move(5)
    send(world, "detector-r1", 90, latency_us=20_000)
    send(world, "detector-r2", 10, latency_us=latency_us)
    rollout_steps.advance(rollout_id=deployment.rollouts.get().pk)


def fill(world: World, deployment: Deployment) -> None:
    """Everything that the first of STEPS asks for."""
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.look(deployment)


def weights(world: World) -> dict[str, int]:
    return world.cluster.weights("vision", "detector")


def test_a_slow_candidate_is_gone_in_the_very_look_that_shows_it(world: World) -> None:
    deployment, _rollout = start(world)
    world.clock.move(10)
    looks = 0
    while Rollout.objects.get().phase == RolloutPhase.RUNNING:
        interval(world, deployment, latency_us=28_000)
        looks += 1
        assert looks < 60
    world.work()

    assert weights(world) == {"detector-r1-predictor": 100}
    event = RolloutEvent.objects.get(kind="aborting")
    assert event.actor_name == ""
    assert event.message.startswith(
        "aborted: mean latency: worse than allowed: +40% against stable"
    )
    # The candidate's 20 requests of an interval come in two readings.
    assert looks == 28
    assert Notice.objects.get(event="rollout.aborted").words == event.message


def test_a_good_candidate_waits_with_its_numbers_for_a_person(world: World) -> None:
    deployment, rollout = start(world)
    world.clock.move(60)
    for _ in range(20):
        interval(world, deployment)

    shown = view(world, rollout)
    assert (shown.is_promotable, rollout.phase) == (True, RolloutPhase.RUNNING)
    assert shown.guards[1].words == "no test says worse; 0 of 200 requests failed"
    assert shown.guards[2].words.endswith("worse than the limit in 0 of 10 intervals")
    assert weights(world)["detector-r2-predictor"] == 10
    notice = Notice.objects.get(event="rollout.waits")
    assert notice.data["decide"]["evidence_hash"] == shown.evidence_hash


def test_verdicts_are_kept_when_they_turn_and_not_at_every_look(world: World) -> None:
    deployment, _ = start(world)
    fill(world, deployment)
    for _ in range(5):
        world.clock.move(1)
        world.look(deployment)

    kept = list(RolloutVerdict.objects.order_by("id"))

    assert [[guard["verdict"] for guard in row.guards] for row in kept] == [
        ["not enough data"] * 3,
        ["pass"] * 3,
    ]
    assert kept[-1].evidence_hash == Rollout.objects.get().evidence_hash


def test_numbers_that_vanish_take_back_what_they_allowed_and_abort_nothing(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    assert view(world, rollout).is_promotable

    soak(world, deployment, 40)

    shown = view(world, rollout)
    assert not shown.is_promotable
    assert shown.promotable_reason.startswith("no reading of the candidate since ")
    assert {guard.verdict for guard in shown.guards[1:]} == {"not enough data"}
    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    with pytest.raises(Conflict, match="Not promotable: no reading"):
        rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)


def test_the_refusal_of_a_late_click_says_what_has_turned(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    shown = view(world, rollout)
    world.clock.move(31)

    with pytest.raises(Conflict) as refusal:
        rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    assert refusal.value.code == "evidence_changed"
    assert "error ratio: pass → not enough data (no reading of the candidate" in (
        refusal.value.message
    )
    assert Deployment.objects.get().candidate_weight == 10


def test_a_click_that_comes_after_the_robot_aborted_is_refused(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    shown = view(world, rollout)
    world.clock.move(5)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 5, failure=100)
    world.look(deployment)

    for act in (rollouts.promote, rollouts.promote_fully):
        with pytest.raises(Conflict) as refusal:
            act(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
        assert refusal.value.code == "rollout_phase"

    assert weights(world) == {"detector-r1-predictor": 100}


def test_an_approval_that_comes_too_late_starts_nothing(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.clock.move(15 * 24 * 3600)

    world.work()
    with pytest.raises(Conflict):
        changes.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.EXPIRED
    assert not Rollout.objects.exists()


def test_a_step_that_was_approved_to_go_on_by_itself_does_when_all_guards_pass(
    world: World,
) -> None:
    deployment, _rollout = begin(world, steps=AUTO)
    world.clock.move(70)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)
    world.look(deployment)
    assert weights(world)["detector-r2-predictor"] == 10, "too few requests"
    world.clock.move(5)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)

    world.look(deployment)

    assert weights(world)["detector-r2-predictor"] == 50
    promoted = RolloutEvent.objects.filter(step_index=1).order_by("id").first()
    assert promoted is not None
    assert (promoted.message, promoted.actor_name) == (
        "promoted by itself, as approved with the plan 10 → 50 %",
        "",
    )
    world.look(deployment)
    assert Rollout.objects.get().step_index == 1, "the second step is left to a person"


def test_what_is_paused_does_not_go_on_by_itself(world: World) -> None:
    deployment, rollout = begin(world, steps=AUTO)
    rollouts.pause(actor=world.member, rollout_id=rollout.pk, reason="lunch")

    fill(world, deployment)

    assert Rollout.objects.get().phase == RolloutPhase.PAUSED
    assert weights(world)["detector-r2-predictor"] == 10


def test_a_paused_candidate_that_turns_bad_is_sent_home_all_the_same(world: World) -> None:
    deployment, rollout = start(world)
    rollouts.pause(actor=world.member, rollout_id=rollout.pk)
    world.clock.move(20)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 50, failure=50)

    world.look(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTING
    assert weights(world) == {"detector-r1-predictor": 100}


def test_a_bad_candidate_is_not_swapped_for_a_stable_revision_that_is_down(world: World) -> None:
    deployment, rollout = start(world)
    world.cluster.make_ready("detector-r1", is_ready=False, message="out of memory")
    world.look(deployment)
    world.clock.move(20)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 50, failure=50)
    world.look(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert view(world, rollout).guards[1].verdict == "fail"
    world.cluster.make_ready("detector-r1")
    world.look(deployment)

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
    world.look(deployment)
    assert Rollout.objects.get().phase == RolloutPhase.ABORTING, "decided all the same"
    assert deployment.candidate_weight == 0

    world.cluster.fail_with = None
    world.clock.move(60)
    world.look(deployment)
    assert weights(world) == {"detector-r1-predictor": 100}
    soak(world, deployment, 16)
    world.look(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTED
    assert world.cluster.names("InferenceService") == ["detector-r1"]


def test_blue_green_waits_in_the_dark_then_takes_everything(world: World) -> None:
    deployment, rollout = begin(world, steps=[], kind="blue-green", drain_seconds=60)
    assert rollout.phase == RolloutPhase.RUNNING
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"]
    assert weights(world) == {"detector-r1-predictor": 100}
    world.clock.move(5)
    world.look(deployment)
    shown = view(world, rollout)
    assert shown.is_promotable
    assert shown.promotable_reason == "soak done, checked, without traffic so far"
    assert [guard.guard for guard in shown.guards] == ["Answers before traffic"]

    rollouts.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.look(deployment)
    world.look(deployment)
    assert weights(world) == {"detector-r2-predictor": 100}
    soak(world, deployment, 30)
    assert "detector-r1" in world.cluster.names("InferenceService"), "kept for a minute"
    soak(world, deployment, 31)
    world.look(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED
    assert world.cluster.names("InferenceService") == ["detector-r2"]


def test_blue_green_that_was_paused_in_the_dark_begins_its_check_anew(world: World) -> None:
    deployment, rollout = begin(world, steps=[], kind="blue-green")
    rollouts.pause(actor=world.member, rollout_id=rollout.pk)
    world.look(deployment)
    rollouts.unpause(actor=world.member, rollout_id=rollout.pk)

    world.look(deployment)
    world.look(deployment)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert weights(world) == {"detector-r1-predictor": 100}


@pytest.mark.parametrize(
    "steps",
    [
        [{"weight": 10, "soak_seconds": 0, "min_requests": 0}],
        [{"weight": 0, "soak_seconds": 0, "min_requests": 5}],
        [{"weight": 0, "soak_seconds": 0, "min_requests": 0}] * 2,
        ["dark"],
    ],
)
def test_blue_green_takes_no_steps_with_traffic(world: World, steps: list[Any]) -> None:
    deployment = world.serving()

    with pytest.raises(Invalid) as refusal:
        changes.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=steps,
            plan={"kind": "blue-green"},
        )

    assert "steps" in refusal.value.fields
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
        changes.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{**STEPS[0], **changed}],
        )

    assert "steps" in refusal.value.fields


@pytest.mark.parametrize(
    ("verdict", "phase", "words"),
    [
        (ProbeVerdict.WAITING, RolloutPhase.PREPARING, "before traffic: 1 of 3 answered"),
        (ProbeVerdict.FAILED, RolloutPhase.ABORTED, "aborted: before traffic: 1 of 3 answered"),
        (ProbeVerdict.PASSED, RolloutPhase.RUNNING, None),
    ],
)
def test_no_traffic_before_the_answers_were_checked(
    world: World, verdict: ProbeVerdict, phase: RolloutPhase, words: str | None
) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    rollout = Rollout.objects.get()
    GoldenRun.objects.create(
        rollout=rollout,
        purpose=ProbePurpose.BEFORE_TRAFFIC,
        verdict=verdict,
        words="1 of 3 answered",
        created_at=world.clock.at,
    )
    world.look(deployment)
    world.cluster.make_ready("detector-r2")
    for _ in range(3):
        soak(world, deployment, 16)

    rollout.refresh_from_db()
    assert rollout.phase == phase
    assert words is None or rollout.phase_reason == words
    has_traffic = weights(world).get("detector-r2-predictor", 0) > 0
    assert has_traffic == (verdict == ProbeVerdict.PASSED)


def finish(world: World, deployment: Deployment, rollout: Rollout) -> None:
    shown = view(world, rollout)
    rollouts.promote_fully(
        actor=world.lead2, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED


def test_the_alias_follows_when_the_plan_asked_for_it(world: World) -> None:
    aliases.move(
        actor=world.lead,
        team_slug="vision",
        model_name="detector",
        alias="champion",
        number=world.version1.number,
        is_protected=True,
    )
    deployment, rollout = begin(world, move_alias="champion")
    assert Alias.objects.get(name="champion").version == world.version1

    finish(world, deployment, rollout)

    assert Alias.objects.get(name="champion").version == world.version2
    assert RolloutEvent.objects.get(kind="alias").message == ("detector@champion now is detector:2")


def test_an_alias_that_may_not_be_moved_holds_up_nothing(world: World) -> None:
    deployment, rollout = begin(world, move_alias="champion")
    version = world.version2
    type(version).objects.filter(pk=version.pk).update(state="archived")

    finish(world, deployment, rollout)

    assert not Alias.objects.exists()
    assert RolloutEvent.objects.get(kind="alias").message.startswith(
        "detector@champion was not moved: "
    )
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.DONE


def test_a_plan_is_part_of_what_is_approved(world: World) -> None:
    deployment = world.serving()
    change = changes.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={"guards": [{"metric": "error_rate", "max": 0.02}]},
    )
    changes.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    ChangeRequest.objects.filter(pk=change.pk).update(plan={"kind": "canary", "guards": []})

    world.work()

    assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.SUBMITTED
    assert not Rollout.objects.exists()


def test_a_reading_makes_the_rollouts_of_its_cluster_due(world: World) -> None:
    _deployment, _rollout = start(world)
    later = world.clock.at.replace(year=2030)
    Rollout.objects.update(next_check_at=later)

    hearing.on_readings({world.cluster_id + 1})
    assert Rollout.objects.get().next_check_at == later
    hearing.on_readings({world.cluster_id})

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
    world.look(deployment)
    shown = view(world, rollout)
    assert (shown.candidate_requests, shown.observed_share) == (20, None)
    world.clock.move(5)
    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)

    world.look(deployment)

    shown = view(world, rollout)
    assert (shown.candidate_requests, shown.observed_share) == (30, 0.1)
