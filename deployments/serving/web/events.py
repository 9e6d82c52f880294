"""Rows of a deployment's timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.models import ChangeRequest, Deployment, DeploymentEvent, RolloutEvent
from deployments.serving.domain import event_groups
from deployments.serving.domain.event_groups import EventGroup, TimelineEvent
from deployments.serving.domain.event_meanings import EventMeaning, EventTopic, find_meaning
from deployments.serving.selectors import timeline
from deployments.states import ChangeState
from portal.core.definitions.counts import format_count

# The mark of a meaning. A neutral event has the same small circle as the steps of a plan.
_ICONS: Final[Mapping[EventMeaning, str]] = {
    EventMeaning.DECISION: "user-round",
    EventMeaning.GOOD: "check",
    EventMeaning.BAD: "triangle-alert",
    EventMeaning.NEUTRAL: "circle",
}
_OUTCOMES: Final[Mapping[str, EventMeaning]] = {
    ChangeState.DONE: EventMeaning.GOOD,
    ChangeState.FAILED: EventMeaning.BAD,
    ChangeState.REJECTED: EventMeaning.BAD,
    ChangeState.EXPIRED: EventMeaning.BAD,
    ChangeState.WITHDRAWN: EventMeaning.NEUTRAL,
}
# The tab on which one sees and changes what an event is about: its URL's name, and its text.
_TABS: Final[Mapping[str, tuple[str, str]]] = {
    "bytes as approved": ("manifests", "Manifests"),
    "bytes differ": ("manifests", "Manifests"),
    "caller key": ("callers", "Callers"),
    "drift": ("manifests", "Manifests"),
    "drift choice": ("manifests", "Manifests"),
    "drift held": ("manifests", "Manifests"),
    "drift over": ("manifests", "Manifests"),
    "quality watch": ("health", "Quality"),
    "target": ("targets", "Targets"),
}


@dataclass(frozen=True, slots=True)
class EventRow:
    row: DeploymentEvent | RolloutEvent
    # An EventMeaning; it is the class of the mark.
    tone: str

    @property
    def icon(self) -> str:
        return _ICONS[EventMeaning(self.tone)]

    @property
    def tab(self) -> tuple[str, str] | None:
        return _TABS.get(self.row.kind)


@dataclass(frozen=True, slots=True)
class FoldRow:
    """A line of the timeline: one event, or several of machines behind a text."""

    rows: Sequence[EventRow]
    text: str

    @property
    def newest(self) -> EventRow:
        return self.rows[0]

    @property
    def first_id(self) -> int:
        """The id of the oldest event, which stays when newer ones join."""
        return self.rows[-1].row.pk


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A change request with its events, or a line of none."""

    change: ChangeRequest | None
    folds: Sequence[FoldRow]
    has_rollout_page: bool = False
    # Whether its first events are on the next page.
    is_continued: bool = False

    @property
    def tone(self) -> str:
        if self.change is None:
            return self.folds[0].newest.tone
        return _OUTCOMES.get(self.change.state, EventMeaning.DECISION)

    @property
    def icon(self) -> str:
        return _ICONS[EventMeaning(self.tone)]

    @property
    def title(self) -> str:
        """The change, such as "Canary of detector:2"."""
        if self.change is None:
            return ""
        noun = self.change.noun[:1].upper() + self.change.noun[1:]
        revision = self.change.revision
        return f"{noun} of {revision.version.label}" if revision else noun

    @property
    def approvers(self) -> str:
        if self.change is None:
            return ""
        return ", ".join(approval.user.display_name for approval in self.change.approvals.all())

    @property
    def count(self) -> str:
        return format_count(sum(len(fold.rows) for fold in self.folds), "event")


def event_rows(events: Iterable[Any]) -> list[EventRow]:
    return [EventRow(row, find_tone(row)) for row in events]


def find_tone(event: DeploymentEvent | RolloutEvent) -> EventMeaning:
    """Return the meaning of an event. Those of a rollout are named without "rollout" in its own history."""
    kind = f"rollout {event.kind}" if isinstance(event, RolloutEvent) else event.kind
    return find_meaning(kind, event.message, is_by_person=bool(event.actor_name))


def build_entries(
    deployment: Deployment, events: Sequence[DeploymentEvent], *, is_last_page: bool
) -> list[TimelineEntry]:
    """Group a page of the timeline, newest first."""
    if not events:
        return []
    times = [event.at for event in events]
    requests = timeline.list_requests(deployment, first_at=min(times), last_at=max(times))
    facts = [TimelineEvent(row.pk, row.at, row.kind, row.message) for row in events]
    groups = event_groups.group_events(facts, timeline.find_spans(requests))
    rows = {row.row.pk: row for row in event_rows(events)}
    by_id = {change.pk: change for change in requests}
    has_rollouts = any(hasattr(change, "rollout") for change in requests)
    newest = timeline.find_newest_rollout(deployment) if has_rollouts else None
    return [
        _as_line(group, rows)
        if group.request_id is None
        else _as_request(group, rows, by_id[group.request_id], newest, is_last_page=is_last_page)
        for group in groups
    ]


def read_topic(text: str) -> EventTopic | None:
    """Return the requested filter. None for all events, and for what is no topic."""
    return EventTopic(text) if text in set(EventTopic) else None


def _as_line(group: EventGroup, rows: Mapping[int, EventRow]) -> TimelineEntry:
    return TimelineEntry(None, _as_fold_rows(group, rows))


def _as_request(
    group: EventGroup,
    rows: Mapping[int, EventRow],
    change: ChangeRequest,
    newest_rollout_id: int | None,
    *,
    is_last_page: bool,
) -> TimelineEntry:
    rollout = getattr(change, "rollout", None)
    has_first = any(event.kind == "requested" for event in group.events)
    return TimelineEntry(
        change=change,
        folds=_as_fold_rows(group, rows),
        has_rollout_page=rollout is not None and rollout.pk == newest_rollout_id,
        is_continued=not is_last_page and not has_first,
    )


def _as_fold_rows(group: EventGroup, rows: Mapping[int, EventRow]) -> list[FoldRow]:
    return [
        FoldRow([rows[event.event_id] for event in fold.events], fold.description)
        for fold in group.folds
    ]
