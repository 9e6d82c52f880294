"""The changes of a team since yesterday, as one person tells another, from the audit trail and the budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q
from django.urls import NoReverseMatch, reverse

from deployments import audit_actions
from deployments.registry.services import transitions as versions
from deployments.states import ChangeKind, DeploymentState
from fleet.budgets.domain.thresholds import CrossedThreshold, Threshold
from fleet.budgets.selectors import months
from portal.accounts.models import Team
from portal.audit import selectors
from portal.audit.models import AuditEvent

MOST_LINES: Final = 8
_PERIOD: Final = timedelta(hours=24)
# Enough to leave out what repeats, as of a deployment that fails and recovers all day.
_MOST_EVENTS: Final = 100


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line: "lead approved" before the link, or "recovered" after it. `tone` is that of a timeline's mark."""

    at: datetime
    before: str
    label: str
    after: str
    url: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The words for an action after its object, and after the person who did it. Empty if nobody does it."""

    passive: str
    active: str = ""
    tone: str = ""


_SENTENCES: Final = {
    versions.READY.code: _Sentence("is ready", "verified"),
    versions.RELEASED.code: _Sentence("was released from quarantine", "released from quarantine"),
    versions.QUARANTINED.code: _Sentence("was quarantined", "quarantined", "bad"),
    versions.FAILED.code: _Sentence("failed its verification", tone="bad"),
    audit_actions.CHANGE_APPROVED.code: _Sentence("was approved", "approved"),
    audit_actions.APPROVED_IN_EMERGENCY.code: _Sentence(
        "was approved with an emergency override", "approved with an emergency override", "warn"
    ),
    audit_actions.CHANGE_REJECTED.code: _Sentence("was rejected", "rejected", "bad"),
    audit_actions.CHANGE_EXPIRED.code: _Sentence("expired", tone="warn"),
    audit_actions.ROLLOUT_PROMOTED.code: _Sentence("was promoted", "promoted"),
    audit_actions.ROLLOUT_PROMOTED_FULLY.code: _Sentence("was promoted fully", "promoted fully"),
    audit_actions.ROLLOUT_ABORTED.code: _Sentence(
        "returned to stable: its rollout was aborted", "aborted the rollout of", "bad"
    ),
    audit_actions.CALLER_KEY_CREATED.code: _Sentence("was created", "created the key"),
    audit_actions.CALLER_KEY_ROTATED.code: _Sentence("was rotated", "rotated the key"),
    audit_actions.CALLER_KEY_REVOKED.code: _Sentence("was revoked", "revoked the key"),
    audit_actions.CALLER_KEY_EXPIRED.code: _Sentence("expired", tone="warn"),
}
_ROLLED_BACK: Final = _Sentence("is done")
_FAILED: Final = _Sentence("failed", tone="bad")
_FAILING: Final = _Sentence("is failing", tone="bad")
_RECOVERED: Final = _Sentence("recovered")
_STATES: Final = (audit_actions.DEPLOYMENT_STATE.code, audit_actions.PIPELINE_STATE.code)
_SHOWN: Final = (
    Q(action__in=list(_SENTENCES))
    | Q(
        action=audit_actions.CHANGE_DONE.code,
        object_label__startswith=f"{ChangeKind.ROLL_BACK.noun} of ",
    )
    # The abort of a canary is a line of its own.
    | Q(action=audit_actions.CHANGE_FAILED.code)
    & ~Q(object_label__startswith=f"{ChangeKind.CANARY.noun} of ")
    | Q(action__in=_STATES, after__state=DeploymentState.DEGRADED)
    | Q(
        action__in=_STATES,
        before__state=DeploymentState.DEGRADED,
        after__state=DeploymentState.READY,
    )
)
_THRESHOLDS: Final = {
    Threshold.FORECAST: "will not last for the month at the current rate",
    Threshold.HALF: "is half spent",
    Threshold.MOST: "is 80% spent",
    Threshold.ALL: "is spent",
}


def list_changes(team: Team, now: datetime) -> list[ChangeLine]:
    """List the newest changes of the last 24 hours, newest first. What repeats on one object is listed once."""
    since = now - _PERIOD
    events = selectors.list_events(team_slugs=[team.slug]).filter(_SHOWN, at__gte=since)
    lines = [_event_line(event, team) for event in events.order_by("-at", "-id")[:_MOST_EVENTS]]
    lines += [_budget_line(crossed, team) for crossed in months.list_crossed_since(team, since)]
    newest = sorted(lines, key=lambda line: line.at, reverse=True)
    return _without_repeats(newest)[:MOST_LINES]


def _without_repeats(lines: Sequence[ChangeLine]) -> list[ChangeLine]:
    first: dict[tuple[str, str, str], ChangeLine] = {}
    for line in lines:
        first.setdefault((line.label, line.after, line.before), line)
    return list(first.values())


def _event_line(event: AuditEvent, team: Team) -> ChangeLine:
    sentence = _sentence_of(event)
    label = event.object_label.replace(f"{team.slug}/", "", 1)
    is_by_person = event.actor_id is not None and bool(sentence.active)
    return ChangeLine(
        at=event.at,
        before=f"{event.actor_name} {sentence.active}" if is_by_person else "",
        label=label,
        after="" if is_by_person else sentence.passive,
        url=_url_of(event, team, label),
        tone=sentence.tone,
    )


def _sentence_of(event: AuditEvent) -> _Sentence:
    if event.action in _STATES:
        is_failing = event.after.get("state") == DeploymentState.DEGRADED
        return _FAILING if is_failing else _RECOVERED
    if event.action == audit_actions.CHANGE_FAILED.code:
        return _FAILED
    return _SENTENCES.get(event.action, _ROLLED_BACK)


def _url_of(event: AuditEvent, team: Team, label: str) -> str:
    """Return the page of the event's object. Empty if its label names none."""
    try:
        return _URLS[event.object_type](event, team, label)
    except (KeyError, ValueError, NoReverseMatch):
        return ""


def _budget_line(crossed: CrossedThreshold, team: Team) -> ChangeLine:
    return ChangeLine(
        at=crossed.at,
        before="",
        label=f"Budget for {crossed.month:%B}",
        after=_THRESHOLDS[crossed.threshold],
        url=f"{reverse('costs')}?team={team.slug}",
        tone="bad" if crossed.threshold == Threshold.ALL else "warn",
    )


def _version_url(_event: AuditEvent, team: Team, label: str) -> str:
    model, _, number = label.rpartition(":")
    return reverse("version", args=(team.slug, model, int(number)))


def _request_url(event: AuditEvent, _team: Team, _label: str) -> str:
    return reverse("change", args=(int(event.object_id),))


def _timeline_url(_event: AuditEvent, team: Team, label: str) -> str:
    return reverse("timeline", args=(team.slug, label))


def _pipeline_url(_event: AuditEvent, team: Team, label: str) -> str:
    return reverse("pipeline", args=(team.slug, label))


def _callers_url(_event: AuditEvent, team: Team, label: str) -> str:
    return reverse("callers", args=(team.slug, label.rpartition(" for ")[2]))


_URLS: Final[dict[str, Callable[[AuditEvent, Team, str], str]]] = {
    "modelversion": _version_url,
    "changerequest": _request_url,
    "deployment": _timeline_url,
    "rollout": _timeline_url,
    "pipeline": _pipeline_url,
    "callerkey": _callers_url,
}
