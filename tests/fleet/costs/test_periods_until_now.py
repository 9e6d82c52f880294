"""A period that lasts until now, and the one before it, are those of the ledger's rows: whatever the hour is and
whatever is added later.
"""

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
from fleet.costs.web import query as cost_query
from fleet.gpus.domain.intervals import HOUR_MS
from fleet.models import LedgerRow

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
FIRST = datetime(2026, 10, 29, tzinfo=UTC)
_GROUPS = {
    GroupBy.MODEL: lambda row: GroupKey(row.team_slug, row.workload_labels["model"]),
    GroupBy.DEPLOYMENT: lambda row: GroupKey(row.team_slug, "", row.workload_labels["deployment"]),
    GroupBy.REVISION: lambda row: GroupKey(
        row.team_slug, "", row.workload_labels["deployment"], row.workload_labels["revision"]
    ),
}

held = st.fixed_dictionaries(
    {
        "hours_ago": st.one_of(st.integers(1, 60), st.integers(1, 70 * 24)),
        "team_slug": st.sampled_from(["vision", "nlp"]),
        "labels": st.sampled_from([("m", "ocr", "1"), ("m", "ocr", "2"), ("n", "asr", "1")]),
        "cost_amount": st.decimals("-90", "90", places=6),
        "gpu_milliseconds": st.integers(-HOUR_MS, 8 * HOUR_MS),
    }
)
rows_of_some_days = st.lists(held, max_size=25)


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


def rows_between(start: datetime, end: datetime) -> list[LedgerRow]:
    return list(LedgerRow.objects.filter(hour__gte=start, hour__lt=end))


def amounts(group: GroupBy, rows: Iterable[LedgerRow]) -> dict[GroupKey, tuple[Decimal, int]]:
    """Cost and GPU milliseconds, of the rows one by one."""
    sums: dict[GroupKey, tuple[Decimal, int]] = defaultdict(lambda: (Decimal(0), 0))
    for row in rows:
        amount, ms = sums[_GROUPS[group](row)]
        sums[_GROUPS[group](row)] = (amount + row.cost_amount, ms + row.gpu_milliseconds)
    return dict(sums)


@settings(max_examples=60, deadline=None)
@given(
    sealed=rows_of_some_days,
    late=rows_of_some_days,
    minutes=st.one_of(st.integers(0, 4 * 24 * 60), st.integers(0, 30 * 24 * 60)),
    period=st.sampled_from(["24h", "24h", "7d", "30d", "month"]),
)
def test_a_period_until_now_is_that_of_the_rows(
    sealed: list[Any], late: list[Any], minutes: int, period: str
) -> None:
    now = FIRST + timedelta(minutes=minutes)
    query = cost_query.read({"range": period}, now=now, team_slugs=[])
    span: dict[str, Any] = {"start": query.start, "end": query.end, "team_slugs": None}
    with time_machine.travel(now, tick=False), transaction.atomic():
        # What comes late, of hours of today and yesterday, are adjustments: observations, prices, corrections.
        for given_rows, kind in ((sealed, "allocated"), (late, "adjustment")):
            insert(given_rows, now, kind)
            rows = rows_between(query.start, query.end)
            rows_before = rows_between(query.start - (query.end - query.start), query.start)
            for group in _GROUPS:
                expected, before = amounts(group, rows), amounts(group, rows_before)
                table = costs.table(group_by=group, **span)
                shown = {row.key: facts_of(row) for row in table.rows}
                assert shown == {
                    key: (amount, hours_of(ms), before_of(before, key))
                    for key, (amount, ms) in expected.items()
                }
                points = series.series(group_by=group, step=Step.DAY, **span)
                assert sum(point.amount for point in points) == table.total_amount
        transaction.set_rollback(True)


def before_of(before: dict[GroupKey, tuple[Decimal, int]], key: GroupKey) -> Decimal | None:
    amount, ms = before.get(key, (Decimal(0), 0))
    return amount if amount or ms else None


def facts_of(row: CostRow) -> tuple[Decimal, Decimal, Decimal | None]:
    return row.amount, row.gpu_hours, row.previous_amount


def hours_of(ms: int) -> Decimal:
    return (Decimal(ms) / HOUR_MS).quantize(Decimal("0.000001"))
