"""Changes and rollouts in words, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.domain.states import ChangeKind, RolloutPhase

KIND_NAMES: Final[Mapping[str, str]] = {
    ChangeKind.DEPLOY: "Deploy",
    ChangeKind.CANARY: "Canary",
    ChangeKind.PROMOTE: "Promote",
    ChangeKind.SCALE: "Scale",
    ChangeKind.ROLL_BACK: "Roll back",
    ChangeKind.START: "Start",
    ChangeKind.RETIRE: "Retire",
}


def change_title(
    kind: str, *, deployment: str, version: str = "", revision: int = 0, is_shadow: bool = False
) -> str:
    """`version` is a label like detector:4."""
    titles = {
        ChangeKind.DEPLOY: f"Deploy {version} as {deployment}",
        ChangeKind.CANARY: f"{'Shadow' if is_shadow else 'Canary'} {version} on {deployment}",
        ChangeKind.ROLL_BACK: f"Roll {deployment} back to r{revision}",
        ChangeKind.START: f"Start {deployment} again",
        ChangeKind.RETIRE: f"Retire {deployment}",
        ChangeKind.SCALE: f"Scale {deployment}",
        ChangeKind.PROMOTE: f"Promote {version} on {deployment}",
    }
    return titles[ChangeKind(kind)]


def consequence(
    kind: str, *, deployment: str, version: str = "", revision: int = 0, is_shadow: bool = False
) -> str:
    """What approving does, in one sentence or two."""
    if is_shadow and kind == ChangeKind.CANARY:
        return (
            f"Starts {version} beside what serves now and mirrors a share of the requests to it; its "
            "answers are dropped. Users only get those of stable until a person promotes it."
        )
    texts = {
        ChangeKind.DEPLOY: f"Starts {version} and opens its address. Nothing serves there yet.",
        ChangeKind.CANARY: (
            f"Starts {version} beside what serves now. It gets no traffic until it is ready, then "
            "the first step's share. Every further step needs a person."
        ),
        ChangeKind.ROLL_BACK: (
            f"Starts r{revision} again and moves all traffic to it once it is ready. "
            "What serves now keeps serving until then."
        ),
        ChangeKind.RETIRE: (
            f"Stops {deployment}: its address answers no more, its GPUs become free. Its history, "
            "cost and revisions stay."
        ),
        ChangeKind.START: (
            f"Starts {version or 'the stable revision'} again and opens its address; its GPUs cost "
            "again from then on."
        ),
        ChangeKind.SCALE: (
            "Changes how many replicas of the revision that serves may run. Nothing new starts "
            "beside it and no traffic moves."
        ),
        ChangeKind.PROMOTE: "Moves the rollout one step on.",
    }
    return texts[ChangeKind(kind)]


def step_words(steps: Sequence[Mapping[str, Any]], *, is_shadow: bool = False) -> str:
    """For example "5 → 25 → 50 → 100 %"."""
    if not steps:
        return ""
    words = " → ".join(str(step["weight"]) for step in steps) + " %"
    return f"mirrors {words}" if is_shadow else words


def rollout_words(phase: str, *, step_index: int, step_count: int, is_shadow: bool = False) -> str:
    kind = "Shadow" if is_shadow else "Canary"
    texts = {
        RolloutPhase.PREPARING: f"{kind} · starting the candidate",
        RolloutPhase.RUNNING: f"{kind} · step {step_index + 1} of {step_count}",
        RolloutPhase.PAUSED: f"Paused · step {step_index + 1} of {step_count}",
        RolloutPhase.PROMOTING: "Promoting · candidate takes over",
        RolloutPhase.COMPLETED: "Completed",
        RolloutPhase.ABORTING: f"Aborting · {'the mirror ends' if is_shadow else 'traffic goes back'}",
        RolloutPhase.ABORTED: "Aborted",
    }
    return texts[RolloutPhase(phase)]


def rollout_short(phase: str, *, weight: int, mirror: int = 0, is_shadow: bool = False) -> str:
    """For the rows of a table."""
    kind = "Shadow" if is_shadow else "Canary"
    share = f"{mirror} % mirrored" if mirror else f"{weight} %"
    texts = {
        RolloutPhase.PREPARING: f"{kind} starting",
        RolloutPhase.RUNNING: f"{kind} {mirror or weight} %",
        RolloutPhase.PAUSED: f"Paused at {share}",
        RolloutPhase.PROMOTING: "Promoting",
        RolloutPhase.ABORTING: "Aborting",
    }
    return texts.get(RolloutPhase(phase), phase)


def duration_words(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")
