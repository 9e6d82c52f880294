"""What people do to a rollout that Hypothesis drives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis.stateful import (
    precondition,
    rule,
)

from deployments.rollouts.domain import decide
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    TrafficSplit,
)
from deployments.states import ROLLOUT, RolloutPhase
from tests.deployments.rollouts.machine_state import RolloutState


class People(RolloutState):
    """They promote, pause, unpause and abort."""

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
