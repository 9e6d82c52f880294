"""decide() driven by Hypothesis: people click, clusters lag and fail, workers crash, time passes,
guards fail and pass and vanish, answers are checked, steps are promoted automatically.
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

from deployments.plans.domain import candidate_replicas
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Effect
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    Checks,
    RolloutObservation,
    RolloutProgress,
    TrafficSplit,
)
from deployments.states import ROLLOUT, RolloutPhase
from tests.deployments.rollouts.machine_plans import DEADLINES, make_plan

_ENDS = (Effect.COMPLETE, Effect.FINISH_ABORT)


class Rollouts(RuleBasedStateMachine):
    """`progress` is what rows say, `route` what the gateway does, `allowed` what people decided."""

    @initialize(
        weights=st.lists(st.integers(1, 100), max_size=4, unique=True).map(sorted) | st.just([0]),
        auto=st.lists(st.booleans(), min_size=4, max_size=4),
        is_mirrored=st.booleans(),
        is_watched=st.booleans(),
        sizes=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    )
    def begin(
        self,
        weights: list[int],
        auto: list[bool],
        *,
        is_mirrored: bool,
        is_watched: bool,
        sizes: tuple[int, int],
    ) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        is_blue_green = weights == [0]
        is_shadow = is_mirrored and bool(weights) and not is_blue_green
        self.progress = RolloutProgress(
            plan=make_plan(weights, auto, is_shadow=is_shadow, is_watched=is_watched),
            phase=RolloutPhase.PREPARING,
            step_index=0,
            step_started_at=None,
            phase_deadline_at=self.now + timedelta(seconds=decide.PREPARE_SECONDS),
            desired=NO_TRAFFIC,
            is_candidate_desired=False,
            is_swapped=False,
            drain_started_at=None,
            stable_replicas=sizes[0],
            approved_replicas=sizes[1],
        )
        self.grown = 0
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
            checks_message="checked",
            failure=self.failing,
            is_auto_promotable=self.is_promotable and not self.failing,
        )

    @rule(is_crashing=st.booleans())
    def reconcile_now(self, is_crashing: bool) -> None:
        """A crash after deciding loses the effect; the next pass must decide the same again."""
        decision = decide.decide(self.progress, self.observation(), self.now)
        if is_crashing:
            assert decide.decide(self.progress, self.observation(), self.now) == decision
            return
        self.act(decision)

    def act(self, decision: decide.Decision) -> None:
        if decision.effect in _ENDS:
            self.end(decision.effect)
        elif decision.effect == Effect.ADD_CANDIDATE:
            replicas = self.progress.replicas_at(0)
            self.want(is_candidate_desired=True, desired=NO_TRAFFIC, replicas=replicas)
        elif decision.effect == Effect.START_SOAK:
            self.progress = replace(self.progress, step_started_at=self.now)
        elif decision.effect in (Effect.WATCH, Effect.START_DRAIN):
            self.drain(decision.effect)
        elif decision.effect == Effect.ABORT:
            self.abort_now()
        elif decision.effect in (Effect.PROMOTE, Effect.ADVANCE):
            self.go_on(decision.effect)
        elif decision.effect != Effect.WAIT:
            self.shift(decision)

    def go_on(self, effect: Effect) -> None:
        if effect == Effect.ADVANCE:
            self.advance()
            return
        assert self.progress.step.auto_promote, "its automatic promotion was not approved"
        assert self.is_promotable, "without evidence"
        assert not self.failing, "against the evidence"
        assert self.progress.phase == RolloutPhase.RUNNING
        assert not (self.progress.is_shadow and self.progress.is_last_step), (
            "only people give users its answers"
        )
        self.promote()

    def shift(self, decision: decide.Decision) -> None:
        """The effects that move traffic."""
        if decision.effect in (Effect.START, Effect.SWITCH):
            assert self.checks == Checks.PASSED, "traffic before its answers were checked"
        if decision.effect == Effect.START:
            self.progress = replace(self.progress, step_started_at=None)
            self.move(RolloutPhase.RUNNING)
        elif decision.effect == Effect.SWITCH:
            assert self.progress.is_direct
            self.move(RolloutPhase.RUNNING)
            self.move(RolloutPhase.PROMOTING)
        elif decision.effect == Effect.SWAP:
            assert self.route == 100, "swapped before the gateway sent everything"
            assert self.mirror == 0, "copies go to whoever answers"
            # The same backend keeps all requests; it is only called stable now.
            self.route = 0
            self.want(is_swapped=True)
        self.want(desired=TrafficSplit(decision.weight or 0, decision.mirror))

    def end(self, effect: Effect) -> None:
        is_complete = effect == Effect.COMPLETE
        assert not is_complete or self.progress.is_swapped
        if is_complete and self.progress.plan.watched_seconds:
            until = self.progress.watch_until
            assert self.now >= (until or self.progress.phase_deadline_at), "not watched to the end"
        is_late = self.now >= self.progress.phase_deadline_at
        assert is_late or self.mirror == 0, "removed while it gets copies"
        self.move(RolloutPhase.COMPLETED if is_complete else RolloutPhase.ABORTED)
        self.want(is_candidate_desired=False, desired=NO_TRAFFIC)

    def drain(self, effect: Effect) -> None:
        if effect == Effect.START_DRAIN:
            self.progress = replace(self.progress, drain_started_at=self.now)
            return
        assert self.progress.is_swapped, "watched before it is stable"
        assert self.route == 0, "the old revision still gets requests"
        self.move(RolloutPhase.WATCHING)
        until = self.now + timedelta(seconds=self.progress.plan.watched_seconds)
        self.progress = replace(
            self.progress, drain_started_at=self.now, step_started_at=self.now, watch_until=until
        )

    def move(self, to: RolloutPhase) -> None:
        assert to in ROLLOUT[self.progress.phase], f"{self.progress.phase} to {to}"
        seconds = DEADLINES.get(to, 0)
        self.progress = replace(
            self.progress,
            phase=to,
            phase_deadline_at=self.now + timedelta(seconds=seconds),
            drain_started_at=None,
            promoted_to=self.progress.promoted_to
            if to in (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
            else None,
        )

    def want(self, **changed: Any) -> None:
        self.progress = replace(self.progress, **changed)
        self.is_current = False

    def abort_now(self) -> None:
        was_swapped = self.progress.is_swapped
        self.move(RolloutPhase.ABORTING)
        self.want(is_swapped=False, desired=NO_TRAFFIC)
        if was_swapped:
            self.route = 100

    # What the cluster does.

    @rule()
    def follow(self) -> None:
        self.route, self.mirror = self.progress.desired.weight, self.progress.desired.mirror
        self.is_current = True
        if self.progress.replicas > self.grown:
            # The pods that were added only start.
            self.grown = self.progress.replicas
            self.report_candidate(is_ready=False)

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

    @rule(checks=st.sampled_from(list(Checks)))
    def answer(self, checks: Checks) -> None:
        """The verdict before traffic stays once it is known."""
        if self.checks == Checks.WAITING:
            self.checks = checks

    @rule(failing=st.sampled_from(["", "error ratio"]), is_promotable=st.booleans())
    def judge(self, failing: str, *, is_promotable: bool) -> None:
        self.failing, self.is_promotable = failing, is_promotable

    @rule()
    def a_bad_candidate_with_a_ready_stable_is_gone_at_the_next_look(self) -> None:
        if self.progress.phase not in (RolloutPhase.RUNNING, RolloutPhase.PAUSED):
            return
        if self.progress.phase == RolloutPhase.PAUSED and self.progress.desired == NO_TRAFFIC:
            return
        self.failing, self.stable_ready = "error ratio", True
        self.reconcile_now(is_crashing=False)
        assert self.progress.phase == RolloutPhase.ABORTING
        assert self.progress.desired == NO_TRAFFIC

    @rule()
    def a_failure_while_it_is_watched_goes_back_to_the_old_revision(self) -> None:
        until = self.progress.watch_until
        if self.progress.phase != RolloutPhase.WATCHING or until is None or self.now >= until:
            return
        self.failing, self.stable_ready = "error ratio", True
        self.reconcile_now(is_crashing=False)
        assert self.progress.phase == RolloutPhase.ABORTING
        assert not self.progress.is_swapped
        assert self.progress.desired == NO_TRAFFIC

    @precondition(lambda self: self.progress.phase == RolloutPhase.WATCHING)
    @rule()
    def someone_finishes_the_watch(self) -> None:
        self.progress = replace(self.progress, watch_until=self.now)

    @rule()
    def all_goes_well(self) -> None:
        """Often, so that late phases are reached."""
        self.failing, self.is_promotable, self.checks = "", True, Checks.PASSED
        self.follow()
        self.report_candidate(is_ready=True)
        self.reconcile_now(is_crashing=False)

    # What people do.

    @precondition(lambda self: self.progress.phase == RolloutPhase.RUNNING)
    @rule()
    def promote(self) -> None:
        if self.progress.is_last_step:
            self.promote_fully()
            return
        index = self.progress.step_index + 1
        self.allow(index)
        if self.progress.promoted_to is None:
            self.grow_or(index)

    @precondition(lambda self: self.progress.phase == RolloutPhase.RUNNING)
    @rule()
    def promote_fully(self) -> None:
        index = len(self.progress.plan.steps)
        self.allow(index)
        self.grow_or(index)

    def allow(self, index: int) -> None:
        steps = self.progress.plan.steps
        weight = steps[index].weight if index < len(steps) else 100
        if index == len(steps):
            self.allowed, self.people_let_it = 100, True
        elif self.progress.is_shadow:
            self.allowed_mirror = max(self.allowed_mirror, weight)
        else:
            self.allowed = max(self.allowed, weight)

    def grow_or(self, index: int) -> None:
        """Replicas first, where the traffic of that step needs more."""
        if not self.progress.grows_before(index):
            self.go_to(index)
            return
        self.progress = replace(
            self.progress,
            promoted_to=index,
            phase_deadline_at=self.now + timedelta(seconds=decide.PREPARE_SECONDS),
        )
        self.want(replicas=self.progress.replicas_at(index))

    def advance(self) -> None:
        index = self.progress.promoted_to
        assert index is not None
        assert self.is_current
        assert self.candidate_ready is True, "its replicas are not ready"
        assert self.progress.phase == RolloutPhase.RUNNING
        assert self.grown >= self.progress.replicas_at(index)
        self.go_to(index)

    def go_to(self, index: int) -> None:
        if index == len(self.progress.plan.steps):
            self.move(RolloutPhase.PROMOTING)
            self.want(desired=TrafficSplit(100))
            return
        self.progress = replace(
            self.progress, step_index=index, step_started_at=None, promoted_to=None
        )
        self.want(desired=self.progress.requested)

    @precondition(
        lambda self: self.progress.phase in (RolloutPhase.PREPARING, RolloutPhase.RUNNING)
    )
    @rule()
    def pause(self) -> None:
        self.move(RolloutPhase.PAUSED)

    @precondition(lambda self: self.progress.phase == RolloutPhase.PAUSED)
    @rule()
    def unpause(self) -> None:
        has_begun = self.progress.desired != NO_TRAFFIC
        self.move(RolloutPhase.RUNNING if has_begun else RolloutPhase.PREPARING)

    @precondition(
        lambda self: (
            bool(ROLLOUT[self.progress.phase]) and self.progress.phase != RolloutPhase.ABORTING
        )
    )
    @rule()
    def abort(self) -> None:
        self.abort_now()

    # Invariants.

    @invariant()
    def nothing_is_promoted_without_a_person(self) -> None:
        if not hasattr(self, "progress"):
            return
        assert self.progress.desired.weight <= self.allowed
        assert self.progress.desired.mirror <= self.allowed_mirror
        if self.progress.is_swapped:
            assert self.allowed == 100

    @invariant()
    def a_shadow_answers_nobody_before_a_person_lets_it(self) -> None:
        if not hasattr(self, "progress") or not self.progress.is_shadow:
            return
        assert self.progress.desired.weight in (0, 100)
        assert self.route == 0 or self.people_let_it, "a user got its answer"
        assert not (self.progress.desired.weight and self.progress.desired.mirror)

    @invariant()
    def its_replicas_come_before_its_traffic(self) -> None:
        if not hasattr(self, "progress") or self.progress.is_swapped:
            return
        progress = self.progress
        needed = candidate_replicas.at_weight(
            progress.desired.weight or progress.desired.mirror,
            stable=progress.stable_replicas,
            approved=progress.approved_replicas,
            is_mirrored=bool(progress.desired.mirror),
        )
        if progress.desired != NO_TRAFFIC:
            assert progress.replicas >= needed

    @invariant()
    def stable_is_kept_while_it_may_be_needed(self) -> None:
        """The other revision is given up only at the very end."""
        if hasattr(self, "progress") and self.progress.is_swapped and ROLLOUT[self.progress.phase]:
            assert self.progress.is_candidate_desired

    def teardown(self) -> None:
        """Left alone with a cluster that follows, it ends."""
        if not hasattr(self, "progress"):
            return
        for _ in range(60):
            if not ROLLOUT[self.progress.phase]:
                return
            self.follow()
            self.act(decide.decide(self.progress, self.observation(), self.now))
            self.now += timedelta(days=1)
        raise AssertionError(f"{self.progress.phase} never ended")


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
