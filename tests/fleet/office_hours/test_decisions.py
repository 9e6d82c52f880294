"""What a pass over office hours decides, from any state in which a worker may have died."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.decisions import Decision, Event, Move, PoolState, decide
from fleet.office_hours.domain.hours import OfficeHours, Window

HOURS = OfficeHours((Window(480, 1200),) * 7)
OPEN_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
CLOSED_AT = datetime(2026, 11, 20, 22, tzinfo=UTC)
OWN = {"min_size": 1, "max_size": 6, "desired_size": 4}
NIGHT = {"min_size": 0, "max_size": 1, "desired_size": 0}
OTHER = {"min_size": 0, "max_size": 6, "desired_size": 2}


def state_after(*passes: tuple[dict[str, Any], datetime], start: PoolState) -> Decision:
    decision = Decision(start)
    for live, at in passes:
        decision = decide(HOURS, decision.state, live, at)
    return decision


def closed() -> PoolState:
    return state_after((OWN, CLOSED_AT), (NIGHT, CLOSED_AT), start=PoolState()).state


@pytest.mark.parametrize(
    ("size", "closed_size", "expected"),
    [
        (OWN, 0, NIGHT),
        (OWN, 2, {"min_size": 1, "max_size": 2, "desired_size": 2}),
        (OWN, 9, {"min_size": 1, "max_size": 4, "desired_size": 4}),
        ({"gpu_limit": "8"}, 0, {"gpu_limit": "0"}),
        ({"gpu_limit": "2"}, 4, {"gpu_limit": "2"}),
        ({"gpu_limit": None}, 0, {"gpu_limit": "0"}),
        ({"gpu_limit": "1k"}, 4, {"gpu_limit": "4"}),
        ({"replicas": 3}, 0, {"replicas": 0}),
        ({"replicas": 3}, 5, {"replicas": 3}),
    ],
)
def test_a_closed_pool_is_never_larger(
    size: dict[str, Any], closed_size: int, expected: dict[str, Any]
) -> None:
    assert sizes.compute_closed_size(size, closed_size) == expected


def test_the_intent_is_stored_before_its_effect() -> None:
    first = decide(HOURS, PoolState(), OWN, CLOSED_AT)
    second = decide(HOURS, first.state, OWN, CLOSED_AT)
    third = decide(HOURS, second.state, NIGHT, CLOSED_AT)

    assert (first.effect, first.state.open_size) == (None, OWN)
    assert second.effect is not None
    assert second.effect.after == NIGHT
    assert (third.event, third.state.is_open, third.effect) == (Event.CLOSED, False, None)


def test_it_gets_back_what_it_had() -> None:
    first = decide(HOURS, closed(), NIGHT, OPEN_AT)
    second = decide(HOURS, first.state, NIGHT, OPEN_AT)
    third = decide(HOURS, second.state, OWN, OPEN_AT)

    assert second.effect is not None
    assert second.effect.after == OWN
    assert (third.event, third.state.is_open) == (Event.OPENED, True)


@pytest.mark.parametrize("start", [PoolState(last_size=OWN), closed()])
def test_a_change_by_hand_is_noted_and_left_until_the_next_edge(start: PoolState) -> None:
    at = OPEN_AT if start.is_open else CLOSED_AT

    noted = decide(HOURS, start, OTHER, at)
    again = decide(HOURS, noted.state, OTHER, at)

    assert (noted.event, noted.effect) == (Event.CHANGED, None)
    assert (again.event, again.effect) == (None, None)


def test_what_was_changed_in_office_hours_is_what_it_gets_back() -> None:
    changed = decide(HOURS, PoolState(last_size=OWN), OTHER, OPEN_AT)
    closing = decide(HOURS, changed.state, OTHER, CLOSED_AT)

    assert closing.state.open_size == OTHER


def test_a_person_who_scales_while_it_closes_wins() -> None:
    closing = decide(HOURS, PoolState(), OWN, CLOSED_AT)

    decision = decide(HOURS, closing.state, OTHER, CLOSED_AT)

    assert (decision.event, decision.effect) == (Event.CHANGED, None)
    assert (decision.state.is_open, decision.state.move) == (False, None)


def test_a_worker_that_comes_back_after_the_night_does_not_close_in_the_morning() -> None:
    closing = decide(HOURS, PoolState(), OWN, CLOSED_AT)
    morning = CLOSED_AT + timedelta(hours=14)

    decision = decide(HOURS, closing.state, OWN, morning)

    assert (decision.effect, decision.state.is_open, decision.state.move) == (
        None,
        True,
        None,
    )


def test_another_size_of_the_night_is_given_while_it_is_closed() -> None:
    two = OfficeHours(HOURS.days, closed_size=2)

    first = decide(two, closed(), NIGHT, CLOSED_AT)
    by_hand = decide(two, closed(), OTHER, CLOSED_AT)

    assert first.state.move is not None
    assert first.state.move.after == {"min_size": 1, "max_size": 2, "desired_size": 2}
    assert by_hand.state.move is None


def test_their_end_opens_first() -> None:
    passes = [decide(HOURS, closed(), NIGHT, CLOSED_AT, is_ending=True)]
    for live in (NIGHT, OWN, OWN):
        passes.append(decide(HOURS, passes[-1].state, live, CLOSED_AT, is_ending=True))

    assert [item.event for item in passes] == [None, None, Event.OPENED, Event.ENDED]
    assert passes[1].effect is not None
    assert passes[1].effect.after == OWN


sizes_of_groups = st.builds(
    lambda low, more, most: {
        "min_size": low,
        "desired_size": low + more,
        "max_size": max(1, low + more + most),
    },
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 5),
)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), sizes_of_groups)
def test_without_hands_it_always_ends_as_the_clock_says(
    history: list[tuple[bool, bool]], own: dict[str, Any]
) -> None:
    """Each pass: whether it is open by the clock, and whether the worker dies after its effect."""
    state, live, at = PoolState(), dict(own), OPEN_AT
    for is_open, dies in [*history, *[(True, False)] * 4]:
        at = (
            (OPEN_AT if is_open else CLOSED_AT)
            + (at - OPEN_AT.replace(hour=0)) // timedelta(days=1) * timedelta(days=1)
            + timedelta(days=1)
        )
        for _ in range(3):
            decision = decide(HOURS, state, live, at)
            live = dict(decision.effect.after) if decision.effect else live
            state = state if dies else decision.state

    assert live == own
    assert state.is_open


def test_a_move_is_kept_as_it_was() -> None:
    move = Move(opens=True, before=NIGHT, after=OWN, started_at=OPEN_AT)

    assert Move.from_json(move.to_json()) == move
    assert move.token == "open-1795176000"
