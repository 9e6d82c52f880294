"""What a look at a rollout goes by: what was approved of it, and what the cluster shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from deployments.plans.domain.steps import Step
from deployments.states import RolloutPhase


@dataclass(frozen=True, slots=True)
class Share:
    """Percent of the requests that the candidate answers, and that are copied to it."""

    weight: int
    mirror: int = 0

    @property
    def words(self) -> str:
        return f"mirror {self.mirror}%" if self.mirror else f"send {self.weight}%"


NOTHING: Final = Share(0)


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What was approved, and how far people have let it go. `is_swapped`: the candidate is stable."""

    phase: RolloutPhase
    steps: tuple[Step, ...]
    step_index: int
    step_started_at: datetime | None
    phase_deadline_at: datetime
    drain_seconds: int
    desired_weight: int
    is_candidate_wanted: bool
    is_swapped: bool
    drain_started_at: datetime | None
    is_shadow: bool = False
    desired_mirror: int = 0

    @property
    def desired(self) -> Share:
        return Share(self.desired_weight, self.desired_mirror)

    @property
    def asked(self) -> Share:
        """What the present step gives the candidate."""
        share = self.step.weight
        return Share(0, share) if self.is_shadow else Share(share, 0)

    @property
    def may_promote_itself(self) -> bool:
        is_last = self.step_index + 1 == len(self.steps)
        return self.step.auto_promote and not (self.is_shadow and is_last)

    @property
    def is_direct(self) -> bool:
        return not self.steps

    @property
    def step(self) -> Step:
        return self.steps[self.step_index]


class Checks(StrEnum):
    """Of the candidate's answers before any traffic. WAITING: not known yet."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RolloutObservation:
    """What the cluster shows. None is "not known"; `weight` is what the route sends the candidate,
    `mirror` what it copies to it.

    `is_current` is whether the cluster was seen after the last change of what is wanted.
    """

    is_current: bool
    weight: int | None
    is_candidate_ready: bool | None
    is_stable_ready: bool | None
    candidate_unready_since: datetime | None = None
    candidate_words: str = ""
    checks: Checks = Checks.PASSED
    checks_words: str = ""
    # Why the guards send the candidate away; empty while none of them does.
    failing_words: str = ""
    # Soak, requests and guards allow a promotion, as far as it is known now.
    is_promotable: bool = False
    mirror: int | None = 0

    def shows(self, share: Share) -> bool:
        return self.is_current and (self.weight, self.mirror) == (share.weight, share.mirror)
