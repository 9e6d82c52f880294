"""What is known of a rollout that Hypothesis drives, and how its row changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
)

from deployments.rollouts.domain import decide
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    Checks,
    RolloutObservation,
    RolloutProgress,
)
from deployments.states import ROLLOUT, RolloutPhase
from tests.deployments.rollouts.machine_plans import DEADLINES, make_plan


class RolloutState(RuleBasedStateMachine):
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
