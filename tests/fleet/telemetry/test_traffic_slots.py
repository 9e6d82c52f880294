"""Traffic in slots: nothing is lost or invented where minutes become longer slots."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.models import Cluster, Workload, WorkloadHour, WorkloadMinute
from fleet.telemetry.domain.traffic_slots import TrafficSlot, reduce_slots
from fleet.telemetry.selectors import traffic
from portal.core import clock
from portal.core.definitions.time_slots import floor_to
from tests.accounts import make_team

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
COUNTS = st.integers(0, 10**6)


def slot(minute: int, success: int, failure: int = 0, duration_us: int = 0) -> TrafficSlot:
    return TrafficSlot(AT + minute * MINUTE, 60, success, failure, duration_us)


def find_start(step: timedelta) -> Callable[[datetime], datetime]:
    return lambda at: floor_to(at, step)


def test_minutes_are_added_up_by_slot() -> None:
    slots = [slot(0, 60, 0, 600_000), slot(1, 30, 30, 900_000), slot(4, 120, 0, 120_000)]

    pairs = reduce_slots(slots, find_start(2 * MINUTE))

    assert [f"{one.at:%H:%M}" for one in pairs] == ["10:00", "10:04"]
    assert [one.requests_per_second for one in pairs] == [1.0, 2.0]
    assert [one.error_ratio for one in pairs] == [0.25, 0.0]
    assert pairs[0].mean_latency_ms == pytest.approx(1500 / 90)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3000), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)),
    minutes=st.sampled_from([1, 2, 5, 60]),
)
def test_no_request_is_lost_or_invented(
    rows: list[tuple[int, int, int, int, int, int]], minutes: int
) -> None:
    step = minutes * MINUTE
    slots = [TrafficSlot(AT + minute * MINUTE, 60, *counts) for minute, *counts in rows]

    reduced = reduce_slots(slots, find_start(step))

    for name in (
        *("seconds", "success", "failure"),
        *("duration_us", "first_tokens", "first_token_us"),
    ):
        assert sum(getattr(one, name) for one in reduced) == sum(
            getattr(one, name) for one in slots
        )
    times = [one.at for one in reduced]
    assert times == sorted({AT + (one.at - AT) // step * step for one in slots})
    assert reduce_slots(reduced, find_start(step)) == reduced


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return Workload.objects.create(
        cluster=cluster,
        team=make_team(slug="vision"),
        namespace="vision",
        name="detector-r1",
        created_at=AT,
    )


def read(cluster: Cluster, step: timedelta, start: datetime) -> list[tuple[str, float]]:
    slots = traffic.read_slots(
        cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], start=start, step=step
    )
    return [(f"{one.at:%d %H:%M}", one.requests_per_second) for one in slots["detector-r1"]]


def add_minute(workload: Workload, at: datetime, requests: int, observed_ms: int = 60_000) -> None:
    WorkloadMinute.objects.create(
        workload=workload, start=at, request_success=requests, observed_ms=observed_ms
    )


@pytest.mark.django_db
def test_the_current_minute_and_minutes_without_readings_are_left_out(
    cluster: Cluster, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = AT + timedelta(minutes=10, seconds=20)
    monkeypatch.setattr(clock, "now", lambda: now)
    for minute, requests in ((6, 60), (7, 120), (9, 600), (10, 5)):
        add_minute(workload, AT + minute * MINUTE, requests)
    add_minute(workload, AT + 8 * MINUTE, 0, observed_ms=0)

    assert read(cluster, MINUTE, AT) == [("20 10:06", 1.0), ("20 10:07", 2.0), ("20 10:09", 10.0)]
    assert read(cluster, 2 * MINUTE, AT) == [("20 10:06", 1.5), ("20 10:08", 10.0)]


@pytest.mark.django_db
def test_hours_come_from_hours_and_the_current_one_from_its_minutes(
    cluster: Cluster, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = AT + timedelta(minutes=10, seconds=20)
    monkeypatch.setattr(clock, "now", lambda: now)
    for ago, requests, observed_ms in ((24, 3600, 3_600_000), (1, 600, 600_000), (2, 0, 0)):
        WorkloadHour.objects.create(
            workload=workload,
            start=AT - timedelta(hours=ago),
            request_success=requests,
            observed_ms=observed_ms,
        )
    add_minute(workload, AT + 4 * MINUTE, 120)
    # Part of a whole hour, which has its sum already.
    add_minute(workload, AT - 4 * MINUTE, 120)

    assert read(cluster, timedelta(hours=1), AT - timedelta(days=7)) == [
        ("19 10:00", 1.0),
        ("20 09:00", 1.0),
        ("20 10:00", 2.0),
    ]
