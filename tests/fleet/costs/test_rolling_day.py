"""The last 24 hours by group are those of the ledger's rows, whatever the hour is and whatever is added later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.costs.domain.results import CostRow, GroupBy, GroupKey, Step
from fleet.costs.selectors import costs, series
from fleet.costs.selectors.sealed import four_hours_in
from fleet.costs.web import query as cost_query
from fleet.gpus.domain.intervals import HOUR_MS
from fleet.models import LedgerRow

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
# An hour before the end of a month.
FIRST = datetime(2026, 10, 29, tzinfo=UTC)
_NOW = datetime(2026, 11, 27, 9, 40, tzinfo=UTC)
_GROUPS = {
    GroupBy.MODEL: lambda row: GroupKey(row.team_slug, row.workload_labels["model"]),
    GroupBy.DEPLOYMENT: lambda row: GroupKey(row.team_slug, "", row.workload_labels["deployment"]),
    GroupBy.REVISION: lambda row: GroupKey(
        row.team_slug, "", row.workload_labels["deployment"], row.workload_labels["revision"]
    ),
}

held = st.fixed_dictionaries(
    {
        "hours_ago": st.integers(1, 60),
        "team_slug": st.sampled_from(["vision", "nlp"]),
        "labels": st.sampled_from([("m", "ocr", "1"), ("m", "ocr", "2"), ("n", "asr", "1")]),
        "cost_amount": st.decimals("-90", "90", places=6),
        "gpu_milliseconds": st.integers(-HOUR_MS, 8 * HOUR_MS),
    }
)
rows_of_some_days = st.lists(held, max_size=25)


def at(hour: float, day: int = 27) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC) + hour * HOUR


def insert(given: Iterable[dict[str, Any]], now: datetime, kind: str) -> None:
    hour = now.replace(minute=0, second=0, microsecond=0)
    LedgerRow.objects.bulk_create(
        LedgerRow(
            hour=hour - one["hours_ago"] * HOUR,
            kind=kind,
            cluster_name="eu",
            node_uid=f"n{number}",
            node_name="n",
            namespace=one["team_slug"],
            team_slug=one["team_slug"],
            workload_name=f"w{number}",
            workload_labels=dict(
                zip(("model", "deployment", "revision"), one["labels"], strict=True)
            ),
            instance_type="g5.xlarge",
            cost_amount=one["cost_amount"],
            gpu_milliseconds=one["gpu_milliseconds"],
            sealed_at=now,
        )
        for number, one in enumerate(given)
    )


def amounts(group: GroupBy, start: datetime, end: datetime) -> dict[GroupKey, tuple[Decimal, int]]:
    """Cost and GPU milliseconds, of the rows one by one."""
    sums: dict[GroupKey, tuple[Decimal, int]] = defaultdict(lambda: (Decimal(0), 0))
    for row in LedgerRow.objects.filter(hour__gte=start, hour__lt=end):
        amount, ms = sums[_GROUPS[group](row)]
        sums[_GROUPS[group](row)] = (amount + row.cost_amount, ms + row.gpu_milliseconds)
    return dict(sums)


@settings(max_examples=60, deadline=None)
@given(sealed=rows_of_some_days, late=rows_of_some_days, minutes=st.integers(0, 4 * 24 * 60))
def test_the_last_24_hours_are_those_of_the_rows(
    sealed: list[Any], late: list[Any], minutes: int
) -> None:
    now = FIRST + timedelta(minutes=minutes)
    query = cost_query.read({"range": "24h"}, now=now, team_slugs=[])
    span: dict[str, Any] = {"start": query.start, "end": query.end, "team_slugs": None}
    with time_machine.travel(now, tick=False), transaction.atomic():
        # What comes late, of hours of today and yesterday, are adjustments: observations, prices, corrections.
        for given_rows, kind in ((sealed, "allocated"), (late, "adjustment")):
            insert(given_rows, now, kind)
            for group in _GROUPS:
                expected = amounts(group, query.start, query.end)
                before = amounts(group, query.start - DAY, query.start)
                table = costs.table(group_by=group, **span)
                shown = {row.key: facts_of(row) for row in table.rows}
                assert shown == {
                    key: (amount, hours_of(ms), before.get(key, (None,))[0])
                    for key, (amount, ms) in expected.items()
                }
                points = series.series(group_by=group, step=Step.DAY, **span)
                assert sum(point.amount for point in points) == table.total_amount
        transaction.set_rollback(True)


def facts_of(row: CostRow) -> tuple[Decimal, Decimal, Decimal | None]:
    return row.amount, row.gpu_hours, row.previous_amount


def hours_of(ms: int) -> Decimal:
    return (Decimal(ms) / HOUR_MS).quantize(Decimal("0.000001"))


@pytest.mark.parametrize(
    ("start", "end", "whole"),
    [
        (at(10, day=26), at(0), (at(12, day=26), at(0))),
        (at(12, day=26), at(0), (at(12, day=26), at(0))),
        (at(0), at(7), (at(0), at(4))),
        (at(1), at(7), None),
        (at(1), at(3), None),
        (at(20.5, day=26), at(0), None),
        (at(7.5), at(8.5), None),
        # Until now: later hours of the last four are not sealed.
        (at(1), at(10), (at(4), at(12))),
        (at(9), at(10), None),
        (at(8), at(10), (at(8), at(12))),
        (at(1), at(8.75), (at(4), at(12))),
        (at(1), at(8.5), (at(4), at(8))),
    ],
)
def test_four_hours_are_whole_at_their_ends_or_until_now(
    start: datetime, end: datetime, whole: tuple[datetime, datetime] | None
) -> None:
    assert four_hours_in(start, end, now=_NOW) == whole
