"""What the worker does to a rollout that Hypothesis drives, and what it must never do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import (
    rule,
)

from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Effect
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    Checks,
    TrafficSplit,
)
from deployments.states import RolloutPhase
from tests.deployments.rollouts.machine_people import People

_ENDS = (Effect.COMPLETE, Effect.FINISH_ABORT)


class Worker(People):
    """It carries out the effects of decide()."""

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
        assert (is_complete and is_late) or self.mirror == 0, "removed while it gets copies"
        assert is_complete or self.route == 0, "reported as aborted while the route sends to it"
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

    def advance(self) -> None:
        index = self.progress.promoted_to
        assert index is not None
        assert self.is_current
        assert self.candidate_ready is True, "its replicas are not ready"
        assert self.progress.phase == RolloutPhase.RUNNING
        assert self.grown >= self.progress.replicas_at(index)
        self.go_to(index)
