"""Periods that do not start and end on a full hour: every answer states the hours that it sums."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
import time_machine
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain.results import GroupBy, GroupKey, Step
from fleet.costs.selectors import series
from fleet.gpus.domain.intervals import HOUR, day_shift, hour_of, whole_hours
from fleet.models import Cluster, LedgerRow, SealedHour, Workload, WorkloadHour
from portal.accounts.models import Team
from tests.fleet.one_node import admin, vision

__all__ = ["admin", "vision"]
FIRST = datetime(2026, 11, 20, tzinfo=UTC)
NOW = datetime(2026, 11, 28, 12, 30, tzinfo=UTC)
HOURS = 7 * 24
DAY = timedelta(days=1)
# Of zones that exist: India, Nepal, Newfoundland, Marquesas, Chatham, Kiribati, Baker, New York, Berlin.
OFFSETS = [
    timedelta(minutes=minutes)
    for minutes in (0, 330, 345, -210, -570, 765, 840, -720, -300, 60, 30, -30, 15)
]
moments = st.datetimes(datetime(2026, 11, 1), datetime(2026, 11, 30), timezones=st.just(UTC))


@given(moments, st.timedeltas(timedelta(microseconds=1), timedelta(days=400)))
def test_a_period_is_answered_by_hours(start: datetime, length: timedelta) -> None:
    first, last = whole_hours(start, start + length)

    assert (first, last) == (hour_of(first), hour_of(last))
    assert first <= start < first + HOUR
    if length % HOUR:
        assert start + length <= last < start + length + HOUR
    else:
        assert last - first == length


@given(
    st.sampled_from(OFFSETS), st.dates(datetime(2026, 1, 1).date(), datetime(2026, 12, 1).date())
)
def test_days_of_a_zone_follow_each_other(offset: timedelta, day: Any) -> None:
    midnights = [
        datetime(day.year, day.month, day.day, tzinfo=timezone(offset)) + DAY * n for n in range(3)
    ]
    spans = [whole_hours(a, b) for a, b in pairwise(midnights)]

    assert spans[0][1] == spans[1][0]
    assert all(end - start == DAY for start, end in spans)
    # An hour belongs to the day whose hours it is among.
    shift = day_shift(offset)
    for (start, _), midnight in zip(spans, midnights, strict=False):
        assert (start + shift).astimezone(UTC).hour == 0
        assert ((start + shift).day, (start + shift).month) == (midnight.day, midnight.month)


@pytest.fixture
def ledger(vision: Team) -> Iterator[list[tuple[datetime, Decimal]]]:
    """Each hour of a week has a cost of its own."""
    with time_machine.travel(NOW, tick=False):
        cluster = Cluster.objects.create(
            name="local", kind="local", gateway_url="http://127.0.0.1:1", created_at=FIRST
        )
        workload = Workload.objects.create(
            cluster=cluster,
            namespace="vision",
            name="detector-r1",
            team=vision,
            labels={"deployment": "detector", "model": "vision/detector", "revision": "1"},
            created_at=FIRST,
        )
        hours = [(FIRST + HOUR * n, Decimal(n * n + 7) / 1000) for n in range(HOURS)]
        SealedHour.objects.bulk_create(
            SealedHour(cluster=cluster, hour=hour, sealed_at=NOW) for hour, _ in hours
        )
        LedgerRow.objects.bulk_create(_row(hour, amount) for hour, amount in hours)
        WorkloadHour.objects.bulk_create(
            WorkloadHour(workload=workload, start=hour, inference_count=1) for hour, _ in hours
        )
        yield hours


def _row(hour: datetime, amount: Decimal) -> LedgerRow:
    return LedgerRow(
        hour=hour,
        cluster_name="local",
        node_uid="n1",
        node_name="local-1",
        instance_type="g5.12xlarge",
        kind="allocated",
        team_slug="vision",
        namespace="vision",
        workload_name="detector-r1",
        workload_labels={"deployment": "detector", "model": "vision/detector", "revision": "1"},
        gpu_milliseconds=3_600_000,
        cost_amount=amount,
        usd_per_hour_amount=Decimal("5.672"),
        price_source="list",
        sealed_at=NOW,
    )


def _sum(hours: list[tuple[datetime, Decimal]], start: datetime, end: datetime) -> Decimal:
    return sum((amount for hour, amount in hours if start <= hour < end), Decimal(0))


def _bounds(answer: Any) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(answer["start"]), datetime.fromisoformat(answer["end"])


AT = datetime(2026, 11, 23, 9, tzinfo=UTC)
PERIODS = [
    (AT, AT + timedelta(minutes=1)),
    (AT + timedelta(minutes=1), AT + timedelta(minutes=59)),
    (AT + timedelta(minutes=30), AT + timedelta(minutes=90)),
    (AT + timedelta(minutes=30), AT + timedelta(hours=5, minutes=12, seconds=7)),
    (AT + timedelta(microseconds=1), AT + timedelta(microseconds=2)),
    (AT, AT + timedelta(hours=3)),
    *(
        (datetime(2026, 11, 23, tzinfo=timezone(offset)),) * 2
        for offset in (timedelta(hours=5, minutes=30), timedelta(hours=-9, minutes=-30))
    ),
]


@pytest.mark.parametrize("group", ["team", "model", "deployment", "revision", "cluster"])
@pytest.mark.parametrize(("start", "end"), PERIODS)
@pytest.mark.django_db
def test_every_answer_states_the_hours_that_it_sums(
    admin: Client,
    ledger: list[tuple[datetime, Decimal]],
    start: datetime,
    end: datetime,
    group: str,
) -> None:
    query = {"start": start.isoformat(), "end": (end if end > start else end + DAY).isoformat()}
    first, last = whole_hours(start, end if end > start else end + DAY)
    expected = _sum(ledger, first, last)

    costs = admin.get("/api/v1/costs", {**query, "group_by": group}).json()
    points = admin.get(
        "/api/v1/costs/series", {**query, "group_by": group, "step": "hour", "limit": "500"}
    ).json()
    usage = admin.get("/api/v1/usage", {**query, "group_by": group}).json()

    assert _bounds(costs) == _bounds(points) == _bounds(usage) == (first, last)
    assert Decimal(costs["total_amount"]) == expected
    assert sum(Decimal(point["amount"]) for point in points["results"]) == expected
    assert sum(row["inferences"] for row in usage["results"]) == (last - first) // HOUR


@pytest.mark.parametrize(("start", "end"), PERIODS)
@pytest.mark.django_db
def test_downloads_name_and_have_the_hours_that_they_sum(
    admin: Client, ledger: list[tuple[datetime, Decimal]], start: datetime, end: datetime
) -> None:
    end = end if end > start else end + DAY
    query = {"start": start.isoformat(), "end": end.isoformat()}
    first, last = whole_hours(start, end)
    named = [f"{at:%Y%m%dT%HZ}" for at in (first, last)]

    answers = {
        "cost_usd": admin.get("/api/v1/costs.csv", query),
        "BilledCost": admin.get("/api/v1/costs/ledger.csv", query),
    }
    page = {"from": start.isoformat(), "to": end.isoformat()}
    answers["cost_usd "] = admin.get("/costs/ledger.csv", page)

    for column, answer in answers.items():
        rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
        total = sum(Decimal(row[column.strip()]) for row in rows)
        assert total == _sum(ledger, first, last), column
        assert re.findall(r"\d{8}T\d\dZ", answer["Content-Disposition"]) == named


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("group", ["team", "deployment", "revision", "cluster"])
@pytest.mark.django_db
def test_days_are_those_of_the_offset_that_was_requested(
    admin: Client, ledger: list[tuple[datetime, Decimal]], offset: timedelta, group: str
) -> None:
    zone = timezone(offset)
    start = datetime(2026, 11, 21, tzinfo=zone)
    query = {"start": start.isoformat(), "end": (start + 4 * DAY).isoformat(), "group_by": group}

    days = admin.get("/api/v1/costs/series", {**query, "step": "day"}).json()

    first, last = whole_hours(start, start + 4 * DAY)
    assert _bounds(days) == (first, last)
    assert [
        (datetime.fromisoformat(point["at"]), Decimal(point["amount"])) for point in days["results"]
    ] == [(first + DAY * n, _sum(ledger, first + DAY * n, first + DAY * (n + 1))) for n in range(4)]
    for n, point in enumerate(days["results"]):
        midnight = start + DAY * n
        assert midnight - datetime.fromisoformat(point["at"]) < HOUR
    whole = admin.get("/api/v1/costs", query).json()
    assert Decimal(whole["total_amount"]) == _sum(ledger, first, last)


@pytest.mark.django_db
def test_days_of_an_offset_without_an_end_or_a_start(
    admin: Client, ledger: list[tuple[datetime, Decimal]]
) -> None:
    month = admin.get("/api/v1/costs", {"end": "2026-11-22T00:00:00+05:30"}).json()

    assert _bounds(month)[0] == datetime(2026, 10, 31, 18, tzinfo=UTC)
    assert _bounds(month)[1] == datetime(2026, 11, 21, 18, tzinfo=UTC)


@pytest.mark.django_db
def test_named_and_other_groups_follow_the_offset_too(
    ledger: list[tuple[datetime, Decimal]],
) -> None:
    start = datetime(2026, 11, 21, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    points = series.series(
        team_slugs=None,
        start=start,
        end=start + 2 * DAY,
        group_by=GroupBy.DEPLOYMENT,
        step=Step.DAY,
        named=[GroupKey(team_slug="vision", deployment="detector")],
        day_offset=timedelta(hours=5, minutes=30),
    )

    first = hour_of(start)
    assert [(point.at, point.amount) for point in points if not point.key.is_others] == [
        (first + DAY * n, _sum(ledger, first + DAY * n, first + DAY * (n + 1))) for n in range(2)
    ]
    assert all(not point.amount for point in points if point.key.is_others)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-23T09:00:00Z", "2026-11-23T09:00:00Z"),
        ("2026-11-23T10:00:00Z", "2026-11-23T09:30:00Z"),
    ],
)
@pytest.mark.django_db
def test_a_period_that_ends_before_it_starts_is_refused(
    admin: Client, ledger: list[tuple[datetime, Decimal]], start: str, end: str
) -> None:
    for path in ("costs", "costs/series", "usage"):
        answer = admin.get(f"/api/v1/{path}", {"start": start, "end": end})

        assert answer.status_code == 422
        assert "must start before it ends" in answer.json()["detail"]
