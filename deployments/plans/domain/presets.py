"""The plans that the portal offers by name: how careful a canary is, as plain data.

Each is a copy to start from, like a team's template: a request stores the values, never the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain import limits
from deployments.guards.domain.guard_set import PlanGuards
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.domain.steps import Step

_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class Preset:
    """A named plan. `steps` are traffic weight, minutes and the requests without which a step does not end.

    `max_ratio` is the limit of each default guard beside stable. A baseline is left out where the number of replicas is
    not fixed, because two sets could then have different sizes.
    """

    name: str
    label: str
    steps: tuple[tuple[int, int, int], ...]
    max_ratio: float
    watch_minutes: int
    has_baseline: bool = False

    def build_plan(
        self, *, has_tokens: bool = False, has_fixed_replicas: bool = True
    ) -> RolloutPlan:
        """Build the plan. `has_tokens` takes the default guards of a language model."""
        guards = limits.DEFAULTS_OF_TOKENS if has_tokens else limits.DEFAULTS
        return RolloutPlan(
            has_baseline=self.has_baseline and has_fixed_replicas,
            guards=PlanGuards(
                tuple(limit.model_copy(update={"max_ratio": self.max_ratio}) for limit in guards)
            ),
            watch_seconds=self.watch_minutes * _MINUTE,
            steps=tuple(
                Step(weight=weight, soak_seconds=minutes * _MINUTE, min_requests=requests)
                for weight, minutes, requests in self.steps
            ),
        )


FAST: Final = Preset(
    name="fast",
    label="Fast",
    steps=((20, 10, 100), (50, 15, 500)),
    max_ratio=1.5,
    watch_minutes=15,
)
NORMAL: Final = Preset(
    name="normal",
    label="Normal",
    steps=((5, 20, 100), (25, 30, 500), (50, 40, 1000)),
    max_ratio=1.25,
    watch_minutes=40,
)
CAREFUL: Final = Preset(
    name="careful",
    label="Careful",
    steps=((1, 60, 100), (5, 90, 500), (25, 120, 1000), (50, 150, 5000)),
    max_ratio=1.1,
    watch_minutes=120,
    has_baseline=True,
)
PRESETS: Final = (FAST, NORMAL, CAREFUL)
DEFAULT: Final = NORMAL
