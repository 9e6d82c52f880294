"""The steps of a rollout plan: one weight each, with its soak time and how much must be seen.

Of a shadow the weight is the share of requests that are copied to the candidate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.errors import Rejected
from deployments.plans.domain.rollout_plan import PlanKind

_MOST_STEPS = 10
_LONGEST_SOAK = 7 * 24 * 3600
_MOST_REQUESTS = 10_000_000
_FEWEST_FOR_AUTO = 20
_LEAST_AFTER_SOAK = 60


@dataclass(frozen=True, slots=True)
class Step:
    weight: int
    soak_seconds: int
    min_requests: int
    # Approved with the plan: when all guards pass, this step is promoted without asking again.
    auto_promote: bool = False
    # From entering the step; a step that is not promoted by then is aborted.
    deadline_seconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# Of blue/green: no traffic until a person promotes fully.
DARK_STEP: Final = Step(weight=0, soak_seconds=0, min_requests=0)


def check_steps(
    steps: list[dict[str, Any]], *, kind: PlanKind = PlanKind.CANARY
) -> tuple[Step, ...]:
    """Raises Rejected unless weights rise strictly within 1..99 (100 is what promoting ends with)
    or end with 100. Blue/green has one dark step of 0 %, which may be left out. The last step of a
    shadow never auto-promote: after it users get the candidate's answers."""
    if kind == PlanKind.BLUE_GREEN:
        return _check_dark_step(steps)
    if not isinstance(steps, list) or not 1 <= len(steps) <= _MOST_STEPS:
        raise _bad_steps(f"Enter 1 to {_MOST_STEPS} steps, for example 5, 25, 50 and 100%.")
    made = tuple(_check_step(index, step) for index, step in enumerate(steps))
    weights = [step.weight for step in made]
    if weights != sorted(set(weights)):
        raise _bad_steps(f"The weights {weights} must increase with each step.")
    if kind == PlanKind.SHADOW and made[-1].auto_promote:
        raise _bad_steps(
            "The last step of a shadow needs manual promotion, because the candidate serves "
            "users afterwards."
        )
    return made


def _check_dark_step(steps: Any) -> tuple[Step, ...]:
    dark = steps or [DARK_STEP.to_json()]
    words = "Blue/green has one step with 0% traffic: the candidate is checked, then takes over."
    if not isinstance(dark, list) or len(dark) != 1 or not isinstance(dark[0], dict):
        raise _bad_steps(words)
    if dark[0].get("weight") != 0 or dark[0].get("min_requests") or dark[0].get("auto_promote"):
        raise _bad_steps(f"{words} It gets no requests and needs manual promotion.")
    return (_check_step(0, {**dark[0], "weight": 1}, is_dark=True),)


def _check_step(index: int, step: Any, *, is_dark: bool = False) -> Step:
    ranges = {
        "weight": (1, 100),
        "soak_seconds": (0, _LONGEST_SOAK),
        "min_requests": (0, _MOST_REQUESTS),
    }
    optional = {"auto_promote", "deadline_seconds"}
    if not isinstance(step, dict) or not set(ranges) <= set(step) <= set(ranges) | optional:
        words = f"Step {index + 1} needs {', '.join(ranges)}, and may have {', '.join(optional)}."
        raise _bad_steps(words)
    for name, (least, most) in ranges.items():
        value = step[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _bad_steps(
                f"{name} of step {index + 1} must be a whole number {least} to {most}."
            )
    made = Step(**{**step, "weight": 0} if is_dark else step)
    _check_options(index, made)
    return made


def _check_options(index: int, step: Step) -> None:
    if not isinstance(step.auto_promote, bool):
        raise _bad_steps(f"auto_promote of step {index + 1} must be true or false.")
    if step.auto_promote and step.min_requests < _FEWEST_FOR_AUTO:
        raise _bad_steps(
            f"Step {index + 1} is promoted automatically and needs min_requests of at least "
            f"{_FEWEST_FOR_AUTO}."
        )
    deadline = step.deadline_seconds
    if deadline is None:
        return
    least = step.soak_seconds + _LEAST_AFTER_SOAK
    is_whole = isinstance(deadline, int) and not isinstance(deadline, bool)
    if not is_whole or not least <= deadline <= 2 * _LONGEST_SOAK:
        raise _bad_steps(
            f"deadline_seconds of step {index + 1} must be a whole number {least} (its soak time "
            f"and a minute) to {2 * _LONGEST_SOAK}."
        )


def _bad_steps(words: str) -> Rejected:
    return Rejected(words, {"steps": words})
