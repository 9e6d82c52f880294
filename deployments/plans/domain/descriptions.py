"""Descriptions of changes and rollouts, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.states import ChangeKind, RolloutPhase

_HOUR: Final = 3600
KIND_NAMES: Final[Mapping[str, str]] = {
    ChangeKind.DEPLOY: "Deploy",
    ChangeKind.CANARY: "Canary",
    ChangeKind.PROMOTE: "Promote",
    ChangeKind.SCALE: "Scale",
    ChangeKind.ROLL_BACK: "Roll back",
    ChangeKind.STOP: "Stop",
    ChangeKind.START: "Start",
    ChangeKind.RETIRE: "Retire",
}


def change_title(
    kind: str,
    *,
    deployment: str,
    version: str = "",
    revision: int = 0,
    restored: int = 0,
    is_shadow: bool = False,
) -> str:
    """Return the title of a change. `version` is a label like detector:4; `restored` is the number of the
    revision that a roll back goes back to, by which it is called everywhere.
    """
    titles = {
        ChangeKind.DEPLOY: f"Deploy {version} as {deployment}",
        ChangeKind.CANARY: f"{'Shadow' if is_shadow else 'Canary'} {version} on {deployment}",
        ChangeKind.ROLL_BACK: f"Roll {deployment} back to {_restored(restored)}",
        ChangeKind.STOP: f"Stop {deployment}",
        ChangeKind.START: f"Start {deployment} again",
        ChangeKind.RETIRE: f"Retire {deployment}",
        ChangeKind.SCALE: f"Scale {deployment}",
        ChangeKind.PROMOTE: f"Promote {version} on {deployment}",
    }
    return titles[ChangeKind(kind)]


def consequence(
    kind: str,
    *,
    deployment: str,
    version: str = "",
    revision: int = 0,
    restored: int = 0,
    is_shadow: bool = False,
) -> str:
    """Describe what approving does, in one sentence or two."""
    if is_shadow and kind == ChangeKind.CANARY:
        return (
            f"Starts {version} next to the stable revision and mirrors part of the requests to "
            "it. Its responses are discarded: users get responses of the stable revision "
            "until someone promotes it."
        )
    texts = {
        ChangeKind.DEPLOY: f"Starts {version} and creates its endpoint.",
        ChangeKind.CANARY: (
            f"Starts {version} next to the stable revision. It gets no traffic until it is "
            "ready, then the traffic weight of the first step. Further steps need promotion."
        ),
        ChangeKind.ROLL_BACK: (
            f"Starts {_restored(restored)} again and moves all traffic to it once it is ready. "
            "The current revision keeps serving until then."
        ),
        ChangeKind.RETIRE: (
            f"Stops {deployment}. The endpoint stops responding and its GPUs are released. "
            "History, cost and revisions are kept."
        ),
        ChangeKind.STOP: (
            f"Stops {deployment}. The endpoint returns 404 and its GPUs are released. "
            "Revisions are kept; you can start it again with a change request."
        ),
        ChangeKind.START: (
            f"Starts {version or 'the stable revision'} again and reopens its endpoint. GPU "
            "costs resume."
        ),
        ChangeKind.SCALE: (
            "Changes the number of replicas of the stable revision. No new revision starts "
            "and no traffic moves."
        ),
        ChangeKind.PROMOTE: "Moves the rollout to the next step.",
    }
    return texts[ChangeKind(kind)]


def _restored(number: int) -> str:
    return f"r{number}" if number else "an earlier revision"


def describe_steps(plan: RolloutPlan) -> str:
    """List the traffic weights of the steps, for example "5 → 25 → 50 → 100%"."""
    weights = " → ".join(str(step.weight) for step in plan.steps)
    return f"mirrors {weights}%" if plan.is_shadow else f"{weights}%"


def describe_progress(
    phase: str, *, step_index: int, step_count: int, is_shadow: bool = False
) -> str:
    kind = "Shadow" if is_shadow else "Canary"
    texts = {
        RolloutPhase.PREPARING: f"{kind} · starting candidate",
        RolloutPhase.RUNNING: f"{kind} · step {step_index + 1} of {step_count}",
        RolloutPhase.PAUSED: f"Paused · step {step_index + 1} of {step_count}",
        RolloutPhase.PROMOTING: "Promoting · candidate becomes stable",
        RolloutPhase.WATCHING: "Promoted · watched, old revision warm",
        RolloutPhase.COMPLETED: "Completed",
        RolloutPhase.ABORTING: (
            f"Aborting · {'mirroring stops' if is_shadow else 'traffic returns to stable'}"
        ),
        RolloutPhase.ABORTED: "Aborted",
    }
    return texts[RolloutPhase(phase)]


def describe_progress_briefly(
    phase: str, *, weight: int, mirror: int = 0, is_shadow: bool = False
) -> str:
    """Describe the phase and traffic weight of a rollout in a few words, for the rows of a table."""
    kind = "Shadow" if is_shadow else "Canary"
    percent = f"{mirror}% mirrored" if mirror else f"{weight}%"
    texts = {
        RolloutPhase.PREPARING: f"{kind} starting",
        RolloutPhase.RUNNING: f"{kind} {mirror or weight}%",
        RolloutPhase.PAUSED: f"Paused at {percent}",
        RolloutPhase.PROMOTING: "Promoting",
        RolloutPhase.WATCHING: "Promoted, watched",
        RolloutPhase.ABORTING: "Aborting",
    }
    return texts.get(RolloutPhase(phase), phase)


def format_about(seconds: float) -> str:
    """Format an estimate: "40 min", "2 h 10 min", "70 h", "12 d", for example."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < _HOUR * 10:
        return format_duration(round(seconds / 60) * 60)
    return f"{seconds / _HOUR:.0f} h" if seconds < _HOUR * 100 else f"{seconds / 24 / _HOUR:.0f} d"


def format_briefly(seconds: float) -> str:
    """Format a duration in one unit, for the axis of a drawing: "20 min", "2.5 h", "70 h", for example."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < _HOUR * 10:
        return f"{round(seconds / _HOUR, 1):g} h"
    return format_about(seconds)


def describe_direct(phase: str) -> str:
    """Describe the phase of a rollout without steps, such as a roll back."""
    texts = {
        RolloutPhase.PREPARING: "Starts, then takes over at once",
        RolloutPhase.PROMOTING: "Takes over",
    }
    return texts.get(RolloutPhase(phase), phase.capitalize())


def describe_already(verb: str, who: str, *, seconds: float) -> str:
    """Say that a decision was made before: "Already approved by lead, 2 min ago."."""
    whole = int(max(seconds, 0))
    rounded = whole if whole < 60 else whole - whole % 60
    since = "just now" if whole < 5 else f"{format_duration(rounded)} ago"
    return f"Already {verb}{f' by {who}' if who else ''}, {since}."


def format_duration(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")
