"""The automatic promotion limit of a team, which applies on top of what a plan allows.

A step with `auto_promote` sends the weight of the next step, or after the last one 100%. A step that
would exceed the limit waits for manual promotion, whatever the plan says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.plans.domain.steps import Step
from portal.core.definitions import Rejected

# The default: plans, which leads approve, decide.
NO_LIMIT: Final = 100


def within(steps: Sequence[Step], percent: int) -> tuple[Step, ...]:
    """Return the steps, with manual promotion for those that would exceed `percent`."""
    return tuple(
        step.model_copy(
            update={"auto_promote": step.auto_promote and _next_weight(steps, index) <= percent}
        )
        for index, step in enumerate(steps)
    )


def require_within(steps: Sequence[Step], percent: int, *, team: str) -> None:
    """Require that no step promotes automatically beyond `percent`. Raises Rejected, naming the first one that
    does.
    """
    for index, step in enumerate(steps):
        weight = _next_weight(steps, index)
        if step.auto_promote and weight > percent:
            message = (
                f"Step {index + 1} would promote automatically to {weight}%, but the automatic "
                f"promotion limit of {team} is {percent}%. Use manual promotion for this step."
            )
            raise Rejected(message, {"steps": message})


def _next_weight(steps: Sequence[Step], index: int) -> int:
    return steps[index + 1].weight if index + 1 < len(steps) else 100
