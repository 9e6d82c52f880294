"""Slots, gaps and ticks: what is known is shown once, and what is not is a gap with its reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.definitions.time_slots import (
    Gap,
    break_line,
    choose_tick_step,
    find_gaps,
    find_lone,
    floor_to,
    list_slots,
)

START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STEPS = st.sampled_from([MINUTE, 2 * MINUTE, 5 * MINUTE, 60 * MINUTE])


def at(minute: int) -> datetime:
    return START + minute * MINUTE


@pytest.mark.parametrize(
    ("time", "step", "start"),
    [
        ("10:07:59", 1, "10:07"),
        ("10:07:59", 2, "10:06"),
        ("10:07:59", 5, "10:05"),
        ("10:05:00", 5, "10:05"),
        ("10:59:59", 60, "10:00"),
    ],
)
def test_slots_begin_at_round_times(time: str, step: int, start: str) -> None:
    moment = datetime.fromisoformat(f"2026-11-20T{time}+00:00")

    assert floor_to(moment, step * MINUTE) == datetime.fromisoformat(f"2026-11-20T{start}+00:00")


def test_neighbours_of_one_reason_are_one_gap() -> None:
    known = {at(2), at(3), at(7)}

    gaps = find_gaps(
        known,
        start=START,
        end=at(9) + timedelta(seconds=30),
        step=MINUTE,
        find_reason=lambda moment: "stopped" if moment >= at(5) else "no readings",
    )

    assert gaps == [
        Gap(at(0), at(2), "no readings"),
        Gap(at(4), at(5), "no readings"),
        Gap(at(5), at(7), "stopped"),
        Gap(at(8), at(9) + timedelta(seconds=30), "stopped"),
    ]


@given(
    known=st.sets(st.integers(0, 40)),
    length=st.integers(0, 40),
    stopped_at=st.integers(0, 40),
    step=STEPS,
)
def test_gaps_are_exactly_the_slots_that_are_not_known(
    known: set[int], length: int, stopped_at: int, step: timedelta
) -> None:
    end = START + length * step
    times = {START + index * step for index in known}

    def find_reason(moment: datetime) -> str:
        return "stopped" if moment >= START + stopped_at * step else "no readings"

    gaps = find_gaps(times, start=START, end=end, step=step, find_reason=find_reason)

    shaded = [
        (moment, gap.reason) for gap in gaps for moment in list_slots(gap.start, gap.end, step)
    ]
    unknown = [moment for moment in list_slots(START, end, step) if moment not in times]
    assert shaded == [(moment, find_reason(moment)) for moment in unknown]
    for before, after in pairwise(gaps):
        assert before.end < after.start or before.reason != after.reason


@given(
    values=st.dictionaries(st.integers(0, 60), st.one_of(st.none(), st.floats(0, 1e6))), step=STEPS
)
def test_a_broken_line_has_the_same_values_and_no_other(
    values: dict[int, float | None], step: timedelta
) -> None:
    line = [(START + index * step, value) for index, value in sorted(values.items())]

    broken = break_line(line, step)

    assert [pair for pair in broken if pair[1] is not None] == [
        pair for pair in line if pair[1] is not None
    ]
    drawn = [
        (one, other)
        for (one, low), (other, high) in pairwise(broken)
        if low is not None and high is not None
    ]
    assert all(other - one == step for one, other in drawn)
    # Each value is on a line or is a dot.
    ends = {end for pair in drawn for end in pair}
    known = {moment for moment, value in line if value is not None}
    assert known == ends | set(find_lone(broken))
    assert not ends & set(find_lone(broken))


@pytest.mark.parametrize(
    ("span", "step"),
    [
        (timedelta(0), ("minutes", 1)),
        (timedelta(minutes=5), ("minutes", 1)),
        (timedelta(minutes=6), ("minutes", 2)),
        (timedelta(hours=1), ("minutes", 15)),
        (timedelta(hours=6), ("hours", 2)),
        (timedelta(hours=24), ("hours", 6)),
        (timedelta(days=7), ("day", 2)),
        (timedelta(days=30), ("day", 7)),
        (timedelta(days=100), ("month", 1)),
        (timedelta(days=400), ("month", 3)),
    ],
)
def test_labels_of_an_axis_are_few_and_at_round_times(
    span: timedelta, step: tuple[str, int]
) -> None:
    assert choose_tick_step(span) == step
