"""The steps of a plan as they are drawn: wide by their time, high by their traffic weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deployments.plans.domain import descriptions
from deployments.plans.domain.steps import Step


@dataclass(frozen=True, slots=True)
class Stair:
    """A step of the drawing. `duration` stands below it, `text` is read by screen readers."""

    weight: int
    seconds: float
    duration: str
    text: str
    is_watch: bool = False


def list_stairs(
    steps: Sequence[Step], watch_seconds: int, *, seconds: Iterable[int | None] = ()
) -> list[Stair]:
    """List the steps and the watch after them. `seconds` is how long each step takes at today's traffic; None, or
    left out, means its soak time at least.
    """
    known = [*seconds, *([None] * len(steps))]
    stairs = [_draw(step, taken) for step, taken in zip(steps, known, strict=False) if step.weight]
    if watch_seconds:
        watch = descriptions.format_about(watch_seconds)
        brief = descriptions.format_briefly(watch_seconds)
        stairs.append(
            Stair(100, watch_seconds, f"watch {brief}", f"100%, watched for {watch}", is_watch=True)
        )
    return stairs


def summarize(stairs: Sequence[Stair]) -> str:
    """Say the steps in one line: "5% 20 min, 25% 30 min, watch 40 min"."""
    return ", ".join(
        each.duration if each.is_watch else f"{each.weight}% {each.duration}".strip()
        for each in stairs
    )


def _draw(step: Step, taken: int | None) -> Stair:
    known = taken is not None
    seconds = step.soak_seconds if taken is None else taken
    least = "" if known or not step.min_requests else "at least "
    duration = descriptions.format_briefly(seconds) if seconds else ""
    text = f"{step.weight}% for {least}{descriptions.format_about(seconds)}" if seconds else ""
    needs = f", {step.min_requests:,} requests" if step.min_requests else ""
    return Stair(
        step.weight,
        seconds,
        f"{'≥ ' if least and duration else ''}{duration}",
        f"{text or f'{step.weight}% until it is promoted'}{needs}",
    )
