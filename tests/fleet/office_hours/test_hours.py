"""When a pool is open: windows of weekdays in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.office_hours.domain import hours as hour_rules
from fleet.office_hours.domain.hours import DAYS, OfficeHours, Window

WORKDAY = Window(7 * 60 + 30, 22 * 60)
WEEKDAYS = OfficeHours((WORKDAY,) * 5 + (None,) * 2, timezone="Europe/Berlin")
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def test_the_published_window_of_weekdays_is_72_and_a_half_hours() -> None:
    assert WEEKDAYS.hours_per_week == Decimal("72.5")
    assert hour_rules.describe(WEEKDAYS) == ("Monday to Friday 07:30 to 22:00 (Europe/Berlin)")
    assert OfficeHours.from_json(WEEKDAYS.to_json()) == WEEKDAYS


@pytest.mark.parametrize(
    ("when", "is_open", "edge"),
    [
        ("2026-11-20 07:29", False, "2026-11-20 07:30"),
        ("2026-11-20 07:30", True, "2026-11-20 22:00"),
        ("2026-11-20 21:59", True, "2026-11-20 22:00"),
        # A Friday: it opens again on Monday.
        ("2026-11-20 22:00", False, "2026-11-23 07:30"),
        ("2026-11-22 12:00", False, "2026-11-23 07:30"),
    ],
)
def test_it_opens_and_closes_by_the_clock_of_the_zone(when: str, is_open: bool, edge: str) -> None:
    assert WEEKDAYS.is_open(at(when)) is is_open
    assert WEEKDAYS.next_edge(at(when)) == at(edge)


def test_a_night_shift_ends_on_the_next_day_also_after_sunday() -> None:
    nights = OfficeHours((Window(22 * 60, 6 * 60),) * 7)

    assert nights.hours_per_week == 56
    assert nights.is_open(at("2026-11-23 05:59", ZoneInfo("UTC")))
    assert not nights.is_open(at("2026-11-23 06:00", ZoneInfo("UTC")))


def test_windows_that_touch_are_one() -> None:
    days = (Window(8 * 60, 24 * 60), Window(0, 24 * 60), Window(0, 60), *(None,) * 4)
    hours = OfficeHours(days)

    assert hours.next_edge(at("2026-11-23 09:00", ZoneInfo("UTC"))) == at(
        "2026-11-25 01:00", ZoneInfo("UTC")
    )
    assert hours.hours_per_week == 41


def test_a_change_to_summer_time_and_back() -> None:
    """On 2026-03-29 Berlin goes from 02:00 to 03:00, on 2026-10-25 from 03:00 back to 02:00."""
    sundays = OfficeHours((*(None,) * 6, Window(60, 4 * 60)), timezone="Europe/Berlin")
    gap = OfficeHours((*(None,) * 6, Window(150, 180)), timezone="Europe/Berlin")

    spring = sundays.next_edge(at("2026-03-29 01:00"))
    autumn = sundays.next_edge(at("2026-10-25 01:00"))

    assert spring - at("2026-03-29 01:00") == timedelta(hours=2)
    assert autumn - at("2026-10-25 01:00") == timedelta(hours=4)
    # The whole window is left out; the next is a week later.
    assert gap.next_edge(at("2026-03-28 12:00")) == at("2026-04-05 02:30")


@pytest.mark.parametrize(
    ("hours", "fields"),
    [
        (OfficeHours((None,) * 7), {"days"}),
        (OfficeHours((Window(0, 24 * 60),) * 7), {"days"}),
        (OfficeHours((Window(0, 24 * 60 - 1),) * 7), {"days"}),
        (OfficeHours((Window(480, 500), *(None,) * 6)), {"days"}),
        (OfficeHours((WORKDAY, *(None,) * 6), timezone="Berlin"), {"timezone"}),
        (OfficeHours((WORKDAY, *(None,) * 6), timezone="../etc/passwd"), {"timezone"}),
        (OfficeHours((WORKDAY, *(None,) * 6), closed_size=-1), {"closed_size"}),
        (OfficeHours((WORKDAY, *(None,) * 6), closed_size=451), {"closed_size"}),
        (WEEKDAYS, set()),
    ],
)
def test_what_cannot_be_kept_is_refused(hours: OfficeHours, fields: set[str]) -> None:
    assert set(hours.problems()) == fields


@pytest.mark.parametrize(
    "pair", [["24:00", "07:00"], ["7:30", "22:00"], ["07:60", "22:00"], ["", "1"]]
)
def test_times_that_are_none_are_refused(pair: list[str]) -> None:
    with pytest.raises(ValueError, match="no hours such as"):
        OfficeHours.from_json({"days": {"monday": pair}})


windows = st.builds(Window, st.integers(0, 1439), st.integers(1, 1440))
schedules = st.builds(
    OfficeHours,
    st.tuples(*[st.one_of(st.none(), windows)] * len(DAYS)),
    timezone=st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
    ),
).filter(lambda hours: not hours.problems())
moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))


@given(schedules, moments)
def test_it_changes_at_the_next_edge_and_never_before(hours: OfficeHours, moment: datetime) -> None:
    edge = hours.next_edge(moment)
    before = hours.is_open(moment)
    between = moment + (edge - moment) / 2

    assert edge > moment
    assert edge - moment < timedelta(days=15)
    assert hours.is_open(between) is before
    assert hours.is_open(edge) is not before


@given(schedules, moments)
def test_the_edges_of_a_week_add_up_to_its_hours(hours: OfficeHours, moment: datetime) -> None:
    """Of UTC, where no week is longer than another."""
    in_utc = OfficeHours(hours.days)
    opened, at_, end = timedelta(), moment, moment + timedelta(days=7)
    while at_ < end:
        edge = min(in_utc.next_edge(at_), end)
        opened += edge - at_ if in_utc.is_open(at_) else timedelta()
        at_ = edge

    assert opened == timedelta(minutes=in_utc.minutes_per_week)
