"""Sums of readings by day, also of the day that runs: whatever is summed up, the figures are those of the hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from fleet.models import (
    Cluster,
    SummedDay,
    TeamUsageDay,
    TeamUsageHour,
    Workload,
    WorkloadDay,
    WorkloadHour,
)
from fleet.telemetry.selectors import readings
from fleet.telemetry.services import days
from tests.accounts import make_team

pytestmark = pytest.mark.django_db
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return Workload.objects.create(
        cluster=cluster,
        team=make_team(slug="audio"),
        namespace="audio",
        name="asr-r1",
        labels={"deployment": "asr"},
        created_at=MIDNIGHT,
    )


def count(workload: Workload, *hours: int) -> None:
    """Hour n has 2 to the power of n inferences, so that a sum says which hours it has."""
    WorkloadHour.objects.bulk_create(
        WorkloadHour(
            workload=workload,
            start=MIDNIGHT + timedelta(hours=hour),
            inference_count=2**hour,
            observed_ms=3_600_000,
        )
        for hour in hours
    )


def counted(start: float, end: float) -> tuple[int, int]:
    span: dict[str, Any] = {
        "start": MIDNIGHT + timedelta(hours=start),
        "end": MIDNIGHT + timedelta(hours=end),
        "team_slugs": None,
    }
    by_team = sum(one.inferences for one in readings.sum_by_team(**span))
    return by_team, sum(one.inferences for one in readings.sum_by_workload(**span))


def test_the_running_day_is_summed_up_to_its_last_final_hour(workload: Workload) -> None:
    count(workload, *range(10))
    with time_machine.travel(MIDNIGHT + timedelta(hours=9, minutes=30), tick=False):
        assert days.sum_up_running()
        assert not days.sum_up_running()

    assert SummedDay.objects.get().until == MIDNIGHT + timedelta(hours=8)
    assert WorkloadDay.objects.get().inference_count == 2**8 - 1
    for start, end in ((0, 24), (0, 10), (0, 8), (-24, 9), (0, 5), (3, 10), (8, 10), (7, 9)):
        hours = range(max(0, start), min(end, 10))
        assert counted(start, end) == (sum(2**h for h in hours),) * 2, (start, end)


def test_later_hours_of_the_day_take_the_place_of_the_sum(workload: Workload) -> None:
    count(workload, *range(10))
    for hours in (3.5, 9.5):
        with time_machine.travel(MIDNIGHT + timedelta(hours=hours), tick=False):
            assert days.sum_up_running()
    count(workload, *range(10, 24))
    assert counted(0, 24) == (2**24 - 1, 2**24 - 1)

    with time_machine.travel(MIDNIGHT + timedelta(hours=25, minutes=1), tick=False):
        assert days.sum_up_finished() == [MIDNIGHT.date()]
        assert days.sum_up_finished() == []
        # Of the new day no hour is final.
        assert not days.sum_up_running()

    assert [row.until for row in SummedDay.objects.all()] == [None]
    assert TeamUsageDay.objects.get().inference_count == 2**24 - 1
    assert counted(0, 24) == (2**24 - 1, 2**24 - 1)


def test_hours_that_were_written_late_are_read_again(workload: Workload) -> None:
    count(workload, *range(10))
    with time_machine.travel(MIDNIGHT + timedelta(hours=9, minutes=30), tick=False):
        days.sum_up_running()
        WorkloadHour.objects.filter(start=MIDNIGHT).update(inference_count=1000)
        days.forget(start=MIDNIGHT)

    assert not SummedDay.objects.exists()
    assert not TeamUsageHour.objects.exists()
    assert counted(0, 24) == (2**10 - 2 + 1000,) * 2


def test_a_part_of_a_summed_day_is_read_from_the_hours_of_teams(workload: Workload) -> None:
    count(workload, *range(10))
    with time_machine.travel(MIDNIGHT + timedelta(hours=9, minutes=30), tick=False):
        assert days.sum_up_running()
    hours = TeamUsageHour.objects.order_by("hour").values_list("inference_count", flat=True)
    assert list(hours) == [2**hour for hour in range(8)]

    # Only a reader of other rows sees what these say.
    WorkloadHour.objects.filter(start=MIDNIGHT + timedelta(hours=4)).update(inference_count=0)
    assert counted(3, 10) == (2**10 - 2**3, 2**10 - 2**3 - 2**4)
    assert counted(3.5, 5.25) == (2**4 + 2**5, 2**5)
    # Of the version before: it sums up days alone.
    SummedDay.objects.update(has_hours=False)
    assert counted(3, 10) == (2**10 - 2**3 - 2**4,) * 2


def test_hours_of_teams_are_of_each_team_and_cluster(workload: Workload) -> None:
    other = Workload.objects.create(
        cluster=workload.cluster,
        team=make_team(slug="nlp"),
        namespace="nlp",
        name="intent-r1",
        created_at=MIDNIGHT,
    )
    count(workload, *range(24))
    count(other, 5, 6)
    with time_machine.travel(MIDNIGHT + timedelta(hours=25, minutes=1), tick=False):
        assert days.sum_up_finished() == [MIDNIGHT.date()]
        assert days.sum_up_finished() == []

    part = {"start": MIDNIGHT + timedelta(hours=6), "end": MIDNIGHT + timedelta(hours=8)}
    for slugs, expected in (
        (None, {"audio": 2**6 + 2**7, "nlp": 2**6}),
        (["nlp"], {"nlp": 2**6}),
    ):
        sums = readings.sum_by_team(team_slugs=slugs, **part)
        assert {one.team_slug: one.inferences for one in sums} == expected
    assert TeamUsageHour.objects.count() == 26
