"""How far a rollout may go on by itself: what the team allows, over what a plan asks for.

A step with `auto_promote` sends the next step's share, or after the last one everything. Beyond the
team's limit the step waits for a person, whatever the plan says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deployments.errors import Rejected
from deployments.plans.domain.steps import Step

# A team that never chose leaves it to the plans that its leads approve.
NO_LIMIT: Final = 100


def within(steps: Sequence[Step], percent: int) -> tuple[Step, ...]:
    """The steps, with those that would go beyond `percent` waiting for a person."""
    return tuple(
        replace(step, auto_promote=step.auto_promote and _next_weight(steps, index) <= percent)
        for index, step in enumerate(steps)
    )


def require_within(steps: Sequence[Step], percent: int, *, team: str) -> None:
    """Raises Rejected, naming the first step that asks for more."""
    for index, step in enumerate(steps):
        to = _next_weight(steps, index)
        if step.auto_promote and to > percent:
            words = (
                f"Step {index + 1} would promote automatically to {to}%, but the automatic "
                f"promotion limit of {team} is {percent}%. Use manual promotion for this step."
            )
            raise Rejected(words, {"steps": words})


def _next_weight(steps: Sequence[Step], index: int) -> int:
    return steps[index + 1].weight if index + 1 < len(steps) else 100
