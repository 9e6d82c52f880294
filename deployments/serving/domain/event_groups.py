"""Group the events of a timeline by the change request that they belong to, and fold what machines did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.serving.domain import event_meanings
from deployments.serving.domain.event_meanings import EventTopic

# Events of machines further apart are not one line.
LONGEST_GAP: Final = timedelta(minutes=30)
_TO: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    event_id: int
    at: datetime
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """The time of a change request. `applied_at` is None before it may run, `ended_at` while it is open."""

    request_id: int
    begun_at: datetime
    applied_at: datetime | None = None
    ended_at: datetime | None = None
    has_rollout: bool = False

    def covers(self, at: datetime) -> bool:
        """Whether the request was being applied at this time."""
        if self.applied_at is None or at < self.applied_at:
            return False
        return self.ended_at is None or at <= self.ended_at


@dataclass(frozen=True, slots=True)
class EventFold:
    """Events that are shown as one line, newest first: a single event, or several of machines."""

    events: tuple[TimelineEvent, ...]

    @property
    def description(self) -> str:
        """Their number and time, such as "12 machine events, 09:14-09:20". Empty for a single event."""
        if len(self.events) == 1:
            return ""
        return describe_machine_events(len(self.events), self.events[-1].at, self.events[0].at)


@dataclass(frozen=True, slots=True)
class EventGroup:
    """The events of one request, newest first. `request_id` None: of none, with exactly one fold."""

    request_id: int | None
    folds: tuple[EventFold, ...]

    @property
    def events(self) -> tuple[TimelineEvent, ...]:
        return tuple(event for fold in self.folds for event in fold.events)


def group_events(events: Sequence[TimelineEvent], spans: Iterable[RequestSpan]) -> list[EventGroup]:
    """Group events, newest first, by their requests. A group is where its newest event is."""
    newest_first = sorted(spans, key=lambda span: (span.begun_at, span.request_id), reverse=True)
    noise = _find_noise(events)
    by_request: dict[int, list[int]] = {}
    alone: list[int] = []
    for index, event in enumerate(events):
        owner = _find_owner(event, newest_first)
        (alone if owner is None else by_request.setdefault(owner, [])).append(index)
    groups = [
        (indexes[0], EventGroup(request_id, _as_folds(events, indexes, noise)))
        for request_id, indexes in by_request.items()
    ]
    groups += [
        (fold[0], EventGroup(None, (_as_fold(events, fold),)))
        for fold in _fold(events, alone, noise)
    ]
    return [group for _, group in sorted(groups, key=lambda pair: pair[0])]


def describe_machine_events(count: int, first: datetime, last: datetime) -> str:
    """Describe folded events with their number and the time (UTC) of the first and the last."""
    begin, end = f"{first:%H:%M}", f"{last:%H:%M}"
    if first.date() != last.date():
        times = f"{first.day} {first:%b} {begin} {_TO} {last.day} {last:%b} {end}"
    else:
        times = begin if begin == end else f"{begin}{_TO}{end}"
    return f"{count} machine events, {times}"


def _find_owner(event: TimelineEvent, newest_first: Sequence[RequestSpan]) -> int | None:
    """Return the request that the event belongs to. A deployment has one open request at a time."""
    kind = event.kind
    if kind in event_meanings.SETTINGS:
        return None
    begun = (span for span in newest_first if span.begun_at <= event.at)
    if kind in event_meanings.REQUEST_STEPS:
        owners = begun
    elif kind.startswith(event_meanings.ROLLOUT_PREFIX):
        owners = (span for span in begun if span.has_rollout)
    else:
        owners = (span for span in begun if span.covers(event.at))
    return next((span.request_id for span in owners), None)


def _find_noise(events: Sequence[TimelineEvent]) -> set[int]:
    """Return the indexes of what machines did. "Ready" is no news unless something was degraded before it."""
    noise: set[int] = set()
    was_degraded = False
    for index in reversed(range(len(events))):
        kind, message = events[index].kind, events[index].message
        state = message.partition(":")[0] if kind == event_meanings.STATE_KIND else ""
        is_start = state == "ready" and not was_degraded
        if is_start or event_meanings.find_topic(kind, message) == EventTopic.MACHINE:
            noise.add(index)
        if state in event_meanings.HEALTH_STATES:
            was_degraded = state == "degraded"
    return noise


def _fold(
    events: Sequence[TimelineEvent], indexes: Iterable[int], noise: set[int]
) -> list[list[int]]:
    """Join what machines did shortly after one another."""
    folds: list[list[int]] = []
    for index in indexes:
        last = folds[-1][-1] if folds else None
        if (
            last is not None
            and index in noise
            and last in noise
            and events[last].at - events[index].at <= LONGEST_GAP
        ):
            folds[-1].append(index)
        else:
            folds.append([index])
    return folds


def _as_folds(
    events: Sequence[TimelineEvent], indexes: Iterable[int], noise: set[int]
) -> tuple[EventFold, ...]:
    return tuple(_as_fold(events, fold) for fold in _fold(events, indexes, noise))


def _as_fold(events: Sequence[TimelineEvent], indexes: Iterable[int]) -> EventFold:
    return EventFold(tuple(events[index] for index in indexes))
