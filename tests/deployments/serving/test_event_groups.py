"""Events are grouped by their request, and what machines did is one line; none is lost or invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.serving.domain import event_meanings
from deployments.serving.domain.event_groups import (
    EventGroup,
    RequestSpan,
    TimelineEvent,
    describe_machine_events,
    group_events,
)
from deployments.serving.domain.event_meanings import (
    EventMeaning,
    EventTopic,
    find_meaning,
    find_topic,
)

START: Final = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)
KINDS: Final = sorted(
    event_meanings.REQUEST_KINDS
    | event_meanings.HEALTH_KINDS
    | {"rollout started", "rollout running", "download", "ready", "committed", "state"}
)
MESSAGES: Final = ("ready", "degraded: no pods", "progressing: loading", "something")
DASH: Final = "\N{EN DASH}"

_SPANS = st.lists(
    st.builds(
        lambda key, begun, applied, ended, has_rollout: RequestSpan(
            request_id=key,
            begun_at=at(begun),
            applied_at=None if applied is None else at(begun + applied),
            ended_at=None if ended is None else at(begun + ended),
            has_rollout=has_rollout,
        ),
        st.integers(1, 5),
        st.integers(0, 100),
        st.none() | st.integers(0, 30),
        st.none() | st.integers(0, 90),
        st.booleans(),
    ),
    max_size=5,
    unique_by=lambda span: span.request_id,
)
_EVENTS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(KINDS), st.sampled_from(MESSAGES)), max_size=40
)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def events_of(*lines: tuple[float, str, str]) -> list[TimelineEvent]:
    """Events that are written from the oldest on, as the timeline has them: newest first."""
    numbered = enumerate(lines, start=1)
    events = [TimelineEvent(n, at(minute), kind, text) for n, (minute, kind, text) in numbered]
    return events[::-1]


def shape_of(groups: list[EventGroup]) -> list[tuple[int | None, list[list[int]]]]:
    return [
        (group.request_id, [[event.event_id for event in fold.events] for fold in group.folds])
        for group in groups
    ]


def test_a_request_its_approvals_its_application_and_its_result_are_one_group() -> None:
    events = events_of(
        (0, "requested", "canary requested"),
        (5, "approval", "approved; 1 of 2"),
        (9, "approved", "canary approved"),
        (9, "rollout started", "r2 replaces r1"),
        (10, "accepted", "accepted"),
        (11, "scheduled", "scheduled"),
        (12, "ready", "detector-r2 is ready"),
        (30, "caller key", "key of shop created"),
        (60, "rollout completed", "completed"),
        (61, "download", "another pod"),
    )
    span = RequestSpan(7, at(0), applied_at=at(9), ended_at=at(60), has_rollout=True)

    groups = group_events(events, [span])

    assert shape_of(groups) == [
        (None, [[10]]),
        (7, [[9], [7, 6, 5], [4], [3], [2], [1]]),
        (None, [[8]]),
    ]


def test_what_machines_do_while_a_request_waits_is_not_its_doing() -> None:
    events = events_of((0, "requested", "scale requested"), (5, "download", "a pod restarts"))

    assert shape_of(group_events(events, [RequestSpan(1, at(0))])) == [
        (None, [[2]]),
        (1, [[1]]),
    ]


def test_the_end_of_a_request_is_its_event_and_not_that_of_the_next() -> None:
    events = events_of(
        (0, "requested", "scale requested"),
        (3, "rejected", "too dear"),
        (8, "requested", "start requested"),
        (9, "withdrawn", ""),
    )
    spans = [RequestSpan(1, at(0), ended_at=at(2.9)), RequestSpan(2, at(8), ended_at=at(9))]

    assert shape_of(group_events(events, spans)) == [(2, [[4], [3]]), (1, [[2], [1]])]


def test_events_of_machines_far_apart_are_two_lines() -> None:
    events = events_of((0, "scheduled", ""), (30, "ready", ""), (61, "scheduled", ""))

    assert shape_of(group_events(events, [])) == [(None, [[3]]), (None, [[2, 1]])]


def test_ready_is_news_only_after_something_was_degraded() -> None:
    events = events_of(
        (0, "state", "progressing: loading"),
        (1, "state", "ready"),
        (2, "state", "degraded: no pods"),
        (3, "state", "progressing: loading"),
        (4, "state", "ready"),
    )

    assert shape_of(group_events(events, [])) == [
        (None, [[5]]),
        (None, [[4]]),
        (None, [[3]]),
        (None, [[2, 1]]),
    ]


@given(_EVENTS, _SPANS)
def test_no_event_is_lost_or_invented_and_the_order_is_kept(
    lines: list[tuple[int, str, str]], spans: list[RequestSpan]
) -> None:
    events = events_of(*sorted(lines, key=lambda line: line[0]))

    groups = group_events(events, spans)

    shown = [event.event_id for group in groups for event in group.events]
    assert sorted(shown, reverse=True) == [event.event_id for event in events]
    for group in groups:
        ids = [event.event_id for event in group.events]
        assert ids == sorted(ids, reverse=True)
    newest = [group.events[0].event_id for group in groups]
    assert newest == sorted(newest, reverse=True)
    owners = [group.request_id for group in groups if group.request_id is not None]
    assert len(owners) == len(set(owners))
    assert all(len(group.folds) == 1 for group in groups if group.request_id is None)


@given(_EVENTS)
def test_only_what_machines_did_is_folded(lines: list[tuple[int, str, str]]) -> None:
    folded = [
        event
        for group in group_events(events_of(*sorted(lines)), [])
        if len(group.events) > 1
        for event in group.events
    ]

    for event in folded:
        is_ready = event.kind == "state" and event.message == "ready"
        assert is_ready or find_topic(event.kind, event.message) == EventTopic.MACHINE


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (at(14), at(20), f"12 machine events, 09:14{DASH}09:20"),
        (at(14), at(14), "12 machine events, 09:14"),
        (at(14.1), at(14.9), "12 machine events, 09:14"),
        (at(-541), at(1), f"12 machine events, 28 Nov 23:59 {DASH} 29 Nov 09:01"),
    ],
)
def test_a_fold_says_how_many_and_when(first: datetime, last: datetime, text: str) -> None:
    assert describe_machine_events(12, first, last) == text


@pytest.mark.parametrize(
    ("kind", "message", "topic", "meaning"),
    [
        ("requested", "scale requested", EventTopic.REQUESTS, EventMeaning.NEUTRAL),
        ("rejected", "too dear", EventTopic.REQUESTS, EventMeaning.BAD),
        ("rollout paused", "", EventTopic.ROLLOUTS, EventMeaning.NEUTRAL),
        ("rollout completed", "", EventTopic.ROLLOUTS, EventMeaning.GOOD),
        ("rollout aborted", "", EventTopic.ROLLOUTS, EventMeaning.BAD),
        ("state", "degraded: no pods", EventTopic.HEALTH, EventMeaning.BAD),
        ("state", "ready", EventTopic.HEALTH, EventMeaning.GOOD),
        ("state", "progressing", EventTopic.MACHINE, EventMeaning.NEUTRAL),
        ("failed", "out of memory", EventTopic.HEALTH, EventMeaning.BAD),
        ("download", "", EventTopic.MACHINE, EventMeaning.NEUTRAL),
        ("something new", "", EventTopic.MACHINE, EventMeaning.NEUTRAL),
    ],
)
def test_an_event_has_a_topic_and_a_meaning(
    kind: str, message: str, topic: EventTopic, meaning: EventMeaning
) -> None:
    assert find_topic(kind, message) == topic
    assert find_meaning(kind, message, is_by_person=False) == meaning


def test_what_a_person_does_is_a_decision_unless_it_stops_something() -> None:
    assert find_meaning("rollout paused", "", is_by_person=True) == EventMeaning.DECISION
    assert find_meaning("requested", "", is_by_person=True) == EventMeaning.DECISION
    assert find_meaning("rejected", "", is_by_person=True) == EventMeaning.BAD
