"""decide() driven by Hypothesis: people click, clusters lag and fail, workers crash, time passes,
guards fail and pass and vanish, answers are checked, steps go on by themselves.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from deployments.plans.domain.steps import Step
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Effect
from deployments.rollouts.domain.observation import NOTHING, Checks, RolloutObservation, RolloutPlan
from deployments.states import ROLLOUT, RolloutPhase

_DEADLINES = {
    RolloutPhase.PREPARING: decide.PREPARE_SECONDS,
    RolloutPhase.RUNNING: decide.DECIDE_SECONDS,
    RolloutPhase.PAUSED: decide.DECIDE_SECONDS,
    RolloutPhase.PROMOTING: decide.PROMOTE_SECONDS,
    RolloutPhase.ABORTING: decide.ABORT_SECONDS,
}

_ENDS = (Effect.COMPLETE, Effect.FINISH_ABORT)


class Rollouts(RuleBasedStateMachine):
    """`plan` is what rows say, `route` what the gateway does, `decided` what people allowed."""

    @initialize(
        weights=st.lists(st.integers(1, 100), max_size=4, unique=True).map(sorted) | st.just([0]),
        auto=st.lists(st.booleans(), min_size=4, max_size=4),
        is_mirrored=st.booleans(),
    )
    def begin(self, weights: list[int], auto: list[bool], *, is_mirrored: bool) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        is_dark = weights == [0]
        is_shadow = is_mirrored and bool(weights) and not is_dark
        self.plan = RolloutPlan(
            phase=RolloutPhase.PREPARING,
            steps=tuple(
                Step(weight, 60, 20, auto_promote=is_auto and not is_dark)
                for weight, is_auto in zip(weights, auto, strict=False)
            ),
            step_index=0,
            step_started_at=None,
            phase_deadline_at=self.now + timedelta(seconds=decide.PREPARE_SECONDS),
            drain_seconds=15,
            desired_weight=0,
            is_candidate_wanted=False,
            is_swapped=False,
            drain_started_at=None,
            is_shadow=is_shadow,
        )
        # The approval of the plan allows its first step, or the switch when it has none. Of a
        # shadow it allows copies, and no answer to any user.
        self.allowed = 0 if is_shadow else weights[0] if weights else 100
        self.allowed_mirror = weights[0] if is_shadow else 0
        self.route, self.mirror = 0, 0
        self.is_current, self.people_let_it = True, False
        self.candidate_ready: bool | None = None
        self.unready_since: datetime | None = None
        self.stable_ready: bool | None = True
        self.checks = Checks.WAITING
        self.failing = ""
        self.is_promotable = False

    # What the worker does.

    def observation(self) -> RolloutObservation:
        return RolloutObservation(
            is_current=self.is_current,
            weight=self.route if self.is_current else None,
            mirror=self.mirror if self.is_current else None,
            is_candidate_ready=self.candidate_ready,
            is_stable_ready=self.stable_ready,
            candidate_unready_since=self.unready_since,
            checks=self.checks,
            checks_words="checked",
            failing_words=self.failing,
            is_promotable=self.is_promotable and not self.failing,
        )

    @rule(is_crashing=st.booleans())
    def look(self, is_crashing: bool) -> None:
        """A crash after deciding loses the effect; the next look must decide the same again."""
        found = decide.decide(self.plan, self.observation(), self.now)
        if is_crashing:
            assert decide.decide(self.plan, self.observation(), self.now) == found
            return
        self.act(found)

    def act(self, found: decide.Decision) -> None:
        if found.effect in _ENDS:
            self.end(found.effect)
        elif found.effect == Effect.ADD_CANDIDATE:
            self.want(is_candidate_wanted=True, desired_weight=0)
        elif found.effect == Effect.START_SOAK:
            self.plan = replace(self.plan, step_started_at=self.now)
        elif found.effect == Effect.START_DRAIN:
            self.plan = replace(self.plan, drain_started_at=self.now)
        elif found.effect == Effect.ABORT:
            self.abort_now()
        elif found.effect == Effect.PROMOTE:
            assert self.plan.step.auto_promote, "nobody let this step go on by itself"
            assert self.is_promotable, "without evidence"
            assert not self.failing, "against the evidence"
            assert self.plan.phase == RolloutPhase.RUNNING
            is_last = self.plan.step_index + 1 == len(self.plan.steps)
            assert not (self.plan.is_shadow and is_last), "only people give users its answers"
            self.promote()
        elif found.effect != Effect.WAIT:
            self.shift(found)

    def shift(self, found: decide.Decision) -> None:
        """The effects that move traffic."""
        if found.effect in (Effect.START, Effect.SWITCH):
            assert self.checks == Checks.PASSED, "traffic before its answers were checked"
        if found.effect == Effect.START:
            self.plan = replace(self.plan, step_started_at=None)
            self.move(RolloutPhase.RUNNING)
        elif found.effect == Effect.SWITCH:
            assert self.plan.is_direct
            self.move(RolloutPhase.RUNNING)
            self.move(RolloutPhase.PROMOTING)
        elif found.effect == Effect.SWAP:
            assert self.route == 100, "swapped before the gateway sent everything"
            assert self.mirror == 0, "copies go to whoever answers"
            # The same backend keeps all requests; it is only called stable now.
            self.route = 0
            self.want(is_swapped=True)
        self.want(desired_weight=found.weight, desired_mirror=found.mirror)

    def end(self, effect: Effect) -> None:
        is_complete = effect == Effect.COMPLETE
        assert not is_complete or self.plan.is_swapped
        is_late = self.now >= self.plan.phase_deadline_at
        assert is_late or self.mirror == 0, "removed while it gets copies"
        self.move(RolloutPhase.COMPLETED if is_complete else RolloutPhase.ABORTED)
        self.want(is_candidate_wanted=False, desired_weight=0, desired_mirror=0)

    def move(self, to: RolloutPhase) -> None:
        assert to in ROLLOUT[self.plan.phase], f"{self.plan.phase} to {to}"
        seconds = _DEADLINES.get(to, 0)
        self.plan = replace(
            self.plan,
            phase=to,
            phase_deadline_at=self.now + timedelta(seconds=seconds),
            drain_started_at=None,
        )

    def want(self, **changed: Any) -> None:
        self.plan = replace(self.plan, **changed)
        self.is_current = False

    def abort_now(self) -> None:
        was_swapped = self.plan.is_swapped
        self.move(RolloutPhase.ABORTING)
        self.want(is_swapped=False, desired_weight=0, desired_mirror=0)
        if was_swapped:
            self.route = 100

    # What the cluster does.

    @rule()
    def follow(self) -> None:
        self.route, self.is_current = self.plan.desired_weight, True
        self.mirror = self.plan.desired_mirror

    @rule(is_ready=st.sampled_from([True, False, None]))
    def report_candidate(self, is_ready: bool | None) -> None:
        if is_ready != self.candidate_ready:
            self.unready_since = self.now
        self.candidate_ready = is_ready

    @rule(is_ready=st.sampled_from([True, False, None]))
    def report_stable(self, is_ready: bool | None) -> None:
        self.stable_ready = is_ready

    @rule(seconds=st.sampled_from([1, 16, 130, 1900, 7 * 24 * 3600 + 1]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(found=st.sampled_from(list(Checks)))
    def answer(self, found: Checks) -> None:
        """The verdict before traffic stays once it is known."""
        if self.checks == Checks.WAITING:
            self.checks = found

    @rule(failing=st.sampled_from(["", "error ratio"]), is_promotable=st.booleans())
    def judge(self, failing: str, *, is_promotable: bool) -> None:
        self.failing, self.is_promotable = failing, is_promotable

    @rule()
    def a_bad_candidate_with_a_ready_stable_is_gone_at_the_next_look(self) -> None:
        if self.plan.phase not in (RolloutPhase.RUNNING, RolloutPhase.PAUSED):
            return
        if self.plan.phase == RolloutPhase.PAUSED and self.plan.desired == NOTHING:
            return
        self.failing, self.stable_ready = "error ratio", True
        self.look(is_crashing=False)
        assert self.plan.phase == RolloutPhase.ABORTING
        assert self.plan.desired == NOTHING

    @rule()
    def all_goes_well(self) -> None:
        """Often, so that late phases are reached."""
        self.report_candidate(is_ready=True)
        self.failing, self.is_promotable, self.checks = "", True, Checks.PASSED
        self.follow()
        self.look(is_crashing=False)

    # What people do.

    @precondition(lambda self: self.plan.phase == RolloutPhase.RUNNING)
    @rule()
    def promote(self) -> None:
        if self.plan.step_index + 1 < len(self.plan.steps):
            index = self.plan.step_index + 1
            self.plan = replace(self.plan, step_index=index, step_started_at=None)
            asked = self.plan.asked
            self.allowed, self.allowed_mirror = asked.weight, asked.mirror
            self.want(desired_weight=asked.weight, desired_mirror=asked.mirror)
        else:
            self.promote_fully()

    @precondition(lambda self: self.plan.phase == RolloutPhase.RUNNING)
    @rule()
    def promote_fully(self) -> None:
        self.allowed, self.people_let_it = 100, True
        self.move(RolloutPhase.PROMOTING)
        self.want(desired_weight=100, desired_mirror=0)

    @precondition(lambda self: self.plan.phase in (RolloutPhase.PREPARING, RolloutPhase.RUNNING))
    @rule()
    def pause(self) -> None:
        self.move(RolloutPhase.PAUSED)

    @precondition(lambda self: self.plan.phase == RolloutPhase.PAUSED)
    @rule()
    def unpause(self) -> None:
        has_begun = self.plan.desired != NOTHING
        self.move(RolloutPhase.RUNNING if has_begun else RolloutPhase.PREPARING)

    @precondition(
        lambda self: bool(ROLLOUT[self.plan.phase]) and self.plan.phase != RolloutPhase.ABORTING
    )
    @rule()
    def abort(self) -> None:
        self.abort_now()

    # What must hold always.

    @invariant()
    def nothing_is_promoted_without_a_person(self) -> None:
        if not hasattr(self, "plan"):
            return
        assert self.plan.desired_weight <= self.allowed
        assert self.plan.desired_mirror <= self.allowed_mirror
        if self.plan.is_swapped:
            assert self.allowed == 100

    @invariant()
    def a_shadow_answers_nobody_before_a_person_lets_it(self) -> None:
        if not hasattr(self, "plan") or not self.plan.is_shadow:
            return
        assert self.plan.desired_weight in (0, 100)
        assert self.route == 0 or self.people_let_it, "a user got its answer"
        assert not (self.plan.desired_weight and self.plan.desired_mirror)

    @invariant()
    def stable_is_kept_while_it_may_be_needed(self) -> None:
        """The other revision is given up only at the very end."""
        if hasattr(self, "plan") and self.plan.is_swapped and ROLLOUT[self.plan.phase]:
            assert self.plan.is_candidate_wanted

    def teardown(self) -> None:
        """Left alone with a cluster that follows, it ends."""
        if not hasattr(self, "plan"):
            return
        for _ in range(60):
            if not ROLLOUT[self.plan.phase]:
                return
            self.follow()
            self.act(decide.decide(self.plan, self.observation(), self.now))
            self.now += timedelta(days=1)
        raise AssertionError(f"{self.plan.phase} never ended")


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_a_plan_that_is_left_alone_with_a_silent_cluster_ends() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for phase in RolloutPhase:
        plan = RolloutPlan(
            phase=phase,
            steps=(Step(10, 0, 0),),
            step_index=0,
            step_started_at=None,
            phase_deadline_at=now - timedelta(seconds=1),
            drain_seconds=15,
            desired_weight=0 if phase == RolloutPhase.ABORTING else 10,
            is_candidate_wanted=True,
            is_swapped=False,
            drain_started_at=None,
        )
        silent = RolloutObservation(
            is_current=False, weight=None, is_candidate_ready=None, is_stable_ready=None
        )

        found = decide.decide(plan, silent, now)

        if not ROLLOUT[phase]:
            assert found.effect == Effect.WAIT
        elif phase == RolloutPhase.ABORTING:
            assert found.effect == Effect.FINISH_ABORT
        else:
            assert found.effect == Effect.ABORT
