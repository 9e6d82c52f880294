"""The input of a rollout's reconcile pass: its progress, and what the cluster shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from deployments.plans.domain import baseline, candidate_replicas
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.states import RolloutPhase


@dataclass(frozen=True, slots=True)
class TrafficSplit:
    """The percentages of the requests that the candidate answers, and that are mirrored to it."""

    weight: int
    mirror: int = 0

    def __str__(self) -> str:
        return f"mirror {self.mirror}%" if self.mirror else f"send {self.weight}%"


NO_TRAFFIC: Final = TrafficSplit(0)


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """The approved plan, and how far the rollout has come. `is_swapped`: the candidate is stable.
    `watch_until` is the end of the watch after promotion. `promoted_to` is the step that was decided on
    and waits for replicas of the candidate; one past the last: all requests. `replicas` are those that
    are desired of it now, `approved_replicas` those that it has at the end. The baseline is desired until
    it has drained.
    """

    plan: RolloutPlan
    phase: RolloutPhase
    step_index: int
    step_started_at: datetime | None
    phase_deadline_at: datetime
    desired: TrafficSplit
    is_candidate_desired: bool
    is_swapped: bool
    drain_started_at: datetime | None
    watch_until: datetime | None = None
    promoted_to: int | None = None
    is_baseline_desired: bool = False
    replicas: int = 1
    stable_replicas: int = 1
    approved_replicas: int = 1

    def replicas_at(self, step_index: int) -> int:
        """Return the replicas that the candidate needs before it gets the traffic of the step."""
        return candidate_replicas.at_step(
            self.plan, step_index, stable=self.stable_replicas, approved=self.approved_replicas
        )

    def grows_before(self, step_index: int) -> bool:
        """Whether the traffic of the step has to wait for replicas: also for some on their way."""
        return self.promoted_to is not None or self.replicas_at(step_index) > self.replicas

    def describe_growth(self) -> str:
        """Describe a promotion that waits for replicas of the candidate. Empty when none does."""
        if self.promoted_to is None:
            return ""
        count, steps = self.replicas_at(self.promoted_to), self.plan.steps
        if self.promoted_to >= len(steps):
            where = "all requests"
        else:
            where = f"{steps[self.promoted_to].weight}%{' mirrored' if self.is_shadow else ''}"
        pods = "1 replica" if count == 1 else f"{count} replicas"
        return f"promoted to {where}, once the candidate has {pods} ready"

    @property
    def requested(self) -> TrafficSplit:
        """The candidate's traffic at the current step."""
        weight = self.step.weight
        return TrafficSplit(0, weight) if self.is_shadow else TrafficSplit(weight)

    @property
    def is_alone(self) -> bool:
        """Whether the candidate gets all requests, so that there is no stable side to compare."""
        return self.is_watched or self.is_alone_at(self.step_index)

    def is_alone_at(self, step_index: int) -> bool:
        return not self.is_shadow and self.plan.steps[step_index].weight == 100

    @property
    def baseline_weight(self) -> int:
        """The percentage of the requests that the baseline gets at the current step."""
        if not self.plan.has_baseline or self.is_watched:
            return 0
        return baseline.share_at(self.step.weight)

    def is_baseline_drained(self, now: datetime) -> bool:
        """Whether it is still there although it has had no requests for long enough."""
        since = self.drain_started_at if self.is_watched else self.step_started_at
        if not self.is_baseline_desired or self.baseline_weight or since is None:
            return False
        return now - since >= timedelta(seconds=self.plan.drain_seconds)

    @property
    def is_promoted_automatically(self) -> bool:
        """Whether the present step needs no person. The last step of a shadow always does."""
        return self.step.auto_promote and not (self.is_shadow and self.is_last_step)

    @property
    def is_last_step(self) -> bool:
        return self.step_index + 1 == len(self.plan.steps)

    @property
    def next_weight(self) -> int:
        """The percentage after promoting the present step."""
        return 100 if self.is_last_step else self.plan.steps[self.step_index + 1].weight

    @property
    def is_watched(self) -> bool:
        """Whether it was promoted, and the old revision is still warm."""
        return self.phase == RolloutPhase.WATCHING

    @property
    def is_watch_ended_early(self) -> bool:
        if self.watch_until is None or self.step_started_at is None:
            return False
        planned = self.step_started_at + timedelta(seconds=self.plan.watched_seconds)
        return self.watch_until < planned

    @property
    def weight(self) -> int:
        """The percentage of the requests that the candidate answers, or that a shadow gets copies of."""
        return 100 if self.is_watched else self.step.weight

    @property
    def is_direct(self) -> bool:
        return not self.plan.steps

    @property
    def is_shadow(self) -> bool:
        """Whether its responses are discarded: not once it is promoted."""
        return self.plan.is_shadow and not self.is_watched

    @property
    def step(self) -> Step:
        return self.plan.steps[self.step_index]

    @property
    def step_key(self) -> str:
        """The key of the present step. Readings with another key are of another step, or of this one before it
        began again.
        """
        started_at = self.step_started_at
        return f"{self.step_index} {started_at.isoformat() if started_at else ''}"


class Checks(StrEnum):
    """The state of the candidate's answers before traffic. WAITING: not known yet."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RolloutObservation:
    """The state that the cluster shows. `weight` is the percentage that the route sends to the candidate,
    `mirror` the percentage that it mirrors. None means not known.

    `is_current`: the cluster was observed after the last change of the desired state.
    """

    is_current: bool
    weight: int | None
    is_candidate_ready: bool | None
    is_stable_ready: bool | None
    # None as well where the rollout has no baseline.
    is_baseline_ready: bool | None = None
    baseline_unready_since: datetime | None = None
    baseline_message: str = ""
    candidate_unready_since: datetime | None = None
    candidate_message: str = ""
    checks: Checks = Checks.PASSED
    checks_message: str = ""
    # Why guards abort the rollout; empty while none of them fails.
    failure: str = ""
    # Soak, requests and guards allow a promotion without a person, as far as it is known now.
    is_auto_promotable: bool = False
    mirror: int | None = 0
    # The candidate, or its baseline, is not ready because pods wait in a queue.
    is_queued: bool = False

    def shows(self, split: TrafficSplit) -> bool:
        return self.is_current and (self.weight, self.mirror) == (split.weight, split.mirror)
