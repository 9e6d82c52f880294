"""The verdict and the activity log of the rollout page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest

from deployments.guards.domain import evidence
from deployments.models import ChangeRequest, Rollout
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary
from deployments.serving.web import events as serving_events
from deployments.states import RolloutPhase

_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class VerdictChange:
    # A state that has a tone, and the word on the pill.
    state: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ActivityLine:
    at: datetime
    message: str
    who: str
    tone: str


def verdict_of(view: RolloutSummary) -> VerdictChange:
    if view.rollout.phase == RolloutPhase.PAUSED:
        return VerdictChange("paused", "Paused", "Resume the rollout to promote it.")
    failing = [guard for guard in evidence.deciding(view.guards) if guard.verdict == "fail"]
    if failing:
        reason = "; ".join(f"{guard.guard}: {guard.message}" for guard in failing)
        return VerdictChange("fail", "Failing", reason)
    if view.is_watched:
        return VerdictChange("watching", "Watching", view.promotable_reason)
    if view.is_promotable:
        return VerdictChange("pass", "Ready to promote", view.promotable_reason)
    return VerdictChange("waiting", "Waiting", view.promotable_reason)


def why_no_promotion(rollout: Rollout, view: RolloutSummary) -> str:
    """Say why the button is disabled. Empty when it is enabled."""
    phase = RolloutPhase(rollout.phase)
    if phase == RolloutPhase.PAUSED:
        return "The rollout is paused. Resume it first."
    if phase != RolloutPhase.RUNNING:
        return "Available while a step is running."
    verdict = verdict_of(view)
    return "" if verdict.state == "pass" else f"{verdict.text}. {sentence(verdict.reason)}".strip()


def why_no_full_promotion(rollout: Rollout, view: RolloutSummary) -> str:
    verdict = verdict_of(view)
    if rollout.phase == RolloutPhase.RUNNING and verdict.state != "fail":
        return ""
    return why_no_promotion(rollout, view)


def activity_of(rollout: Rollout, change: ChangeRequest | None) -> list[ActivityLine]:
    """List the activity of a rollout, newest first, with the people who requested and approved."""
    events = serving_events.event_rows(rollouts.events_of(rollout)[:_MOST_LINES])
    moves = [
        ActivityLine(event.row.at, event.row.message, event.row.actor_name, event.tone)
        for event in events
    ]
    moves = [line for line, before in zip_longest(moves, moves[1:]) if not _is_echo(line, before)]
    lines = chain(moves, _decisions(change) if change else ())
    return sorted(lines, key=lambda line: line.at, reverse=True)


def _is_echo(line: ActivityLine, before: ActivityLine | None) -> bool:
    return before is not None and (line.message, line.who) == (before.message, before.who)


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _decisions(change: ChangeRequest) -> Sequence[ActivityLine]:
    at = change.submitted_at or change.created_at
    requested = ActivityLine(at, "requested", change.requester.display_name, "decision")
    decided = [
        ActivityLine(
            approval.at,
            "approved" if approval.is_approved else "rejected",
            approval.user.display_name,
            "decision" if approval.is_approved else "bad",
        )
        for approval in change.approvals.all()
    ]
    return [requested, *decided]
