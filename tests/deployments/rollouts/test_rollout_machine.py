"""decide() driven by Hypothesis: people click, clusters lag and fail, workers crash, time passes,
guards fail and pass and vanish, answers are checked, steps are promoted automatically.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    invariant,
    precondition,
    rule,
)

from deployments.plans.domain import candidate_replicas
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    Checks,
)
from deployments.states import ROLLOUT, RolloutPhase
from tests.deployments.rollouts.machine_worker import Worker


class Rollouts(Worker):
    """The cluster follows, lags and fails; the invariants hold after each step."""

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
