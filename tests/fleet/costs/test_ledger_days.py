"""The roll-ups of the ledger equal its rows at any moment, and sums of any period are those of its hours."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.costs.domain.results import GroupBy, Step
from fleet.costs.selectors import costs, series
from fleet.costs.selectors.ledger_filter import IDLE
from fleet.costs.services import ledger, open_hours
from fleet.models import (
    Cluster,
    LedgerDay,
    LedgerFourHours,
    LedgerMonth,
    LedgerRow,
    LedgerTeamDay,
    LedgerTeamHour,
    OpenHour,
    SealedHour,
    UnpricedHour,
)
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.prices.services import catalogue
from portal.accounts.policy import SYSTEM
from tests.fleet.costs.observed import G5, HOUR, see
from tests.fleet.objects import START, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("detector")]
FIRST = datetime(2026, 10, 30, tzinfo=UTC)
MICRO = Decimal("0.000001")

hours = st.integers(0, 35 * 24).map(lambda n: FIRST + timedelta(hours=n))
labels = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["vision/m", "nlp/m", ""]),
        "deployment": st.sampled_from(["ocr", "asr", "größe"]),
        "revision": st.sampled_from(["1", "2", None]),
        "free": st.just("x"),
    },
)
held = st.fixed_dictionaries(
    {
        "hour": hours,
        "kind": st.sampled_from(["allocated", "adjustment"]),
        "team_slug": st.sampled_from(["vision", "nlp", ""]),
        "namespace": st.sampled_from(["vision", "default"]),
        "workload_labels": labels,
    }
)
idle = st.fixed_dictionaries({"hour": hours, "kind": st.sampled_from(["idle", "adjustment"])})
sums = st.fixed_dictionaries(
    {
        "cost_amount": st.decimals("-200", "200", places=6),
        "gpu_milliseconds": st.integers(-3_600_000, 28_800_000),
        "cluster_name": st.sampled_from(["local", "eu"]),
        "is_demo": st.booleans(),
    }
)
ledger_rows = st.lists(st.tuples(st.one_of(held, idle), sums), max_size=25)


def assert_days_equal_rows() -> None:
    by_hour: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    by_day: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    by_labels: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    by_month: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    by_four_hours: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in LedgerRow.objects.all():
        is_idle = row.kind == "idle" or (row.kind == "adjustment" and not row.namespace)
        who = (row.cluster_name, row.team_slug, is_idle, row.is_demo)
        names = ("model", "deployment", "revision")
        of = tuple(str(row.workload_labels.get(name) or "") for name in names)
        for total in (
            by_hour[row.hour, *who],
            by_day[row.hour.date(), *who],
            by_labels[row.hour.date(), *who, *of],
            by_month[row.hour.date().replace(day=1), *who, *of],
            by_four_hours[row.hour.replace(hour=row.hour.hour // 4 * 4), *who, *of],
        ):
            total[0] += row.gpu_milliseconds
            total[1] += int(row.cost_amount / MICRO)
    who_names = ("cluster_name", "team_slug", "is_idle", "is_demo")
    ends = ("gpu_milliseconds", "cost_micros")
    for model, keys, expected in (
        (LedgerTeamHour, ("hour", *who_names), by_hour),
        (LedgerTeamDay, ("day", *who_names), by_day),
        (LedgerDay, ("day", *who_names, "model", "deployment", "revision"), by_labels),
        (LedgerMonth, ("month", *who_names, "model", "deployment", "revision"), by_month),
        (LedgerFourHours, ("start", *who_names, "model", "deployment", "revision"), by_four_hours),
    ):
        rows = model.objects.values_list(*keys, *ends)
        assert {tuple(row[:-2]): list(row[-2:]) for row in rows} == expected


@settings(max_examples=25, deadline=None)
@given(
    rows=ledger_rows,
    more=ledger_rows,
    start=hours,
    length=st.one_of(st.integers(1, 36 * 24), st.integers(1, 30)),
    later=st.integers(1, 400),
    minutes=st.sampled_from([(0, 0), (0, 0), (1, 0), (30, 30), (0, 59)]),
)
def test_any_rows_and_any_period(
    rows: list[Any],
    more: list[Any],
    start: datetime,
    length: int,
    later: int,
    minutes: tuple[int, int],
) -> None:
    # Moved back to the hour where it lasts whole hours, else widened to the hours that it touches.
    first, last_hour = start, start + timedelta(hours=length + (minutes == (0, 59)))
    end = start + timedelta(hours=length, minutes=minutes[1])
    start += timedelta(minutes=minutes[0])
    last = max((names["hour"] for names, _ in [*rows, *more]), default=FIRST)
    # Months and days that are not over are read from their sums too.
    now = last + timedelta(hours=later)
    with time_machine.travel(now, tick=False), transaction.atomic():
        for batch in (rows, more):
            LedgerRow.objects.bulk_create(
                LedgerRow(
                    **(names | amounts),
                    node_uid=f"n{number}-{id(batch)}",
                    node_name="n",
                    instance_type="g5.xlarge",
                    sealed_at=FIRST,
                )
                for number, (names, amounts) in enumerate(batch)
            )
        assert_days_equal_rows()
        inside = LedgerRow.objects.filter(hour__gte=first, hour__lt=last_hour)
        own = inside.filter(team_slug="vision").exclude(IDLE)
        for group in GroupBy:
            for teams, expected in ((None, inside), (["vision"], own)):
                total = sum(row.cost_amount for row in expected)
                span: dict[str, Any] = {"team_slugs": teams, "start": start, "end": end}
                table = costs.table(group_by=group, limit=2, **span)
                rest = table.others_amount + (table.idle.amount if table.idle else 0)
                assert table.total_amount == total
                assert sum((row.amount for row in table.rows), rest) == total
                named = [row.key for row in table.rows]
                for step in Step:
                    points = series.series(group_by=group, step=step, named=named, **span)
                    assert sum(point.amount for point in points) == total
        transaction.set_rollback(True)


def test_seal_replay_adjustment_and_late_price(cluster: Cluster) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()
        assert_days_equal_rows()
        ledger.seal_due()
    late = pod(version=60, phase="Succeeded", finished=START + HOUR / 2)
    with time_machine.travel(START + HOUR + timedelta(minutes=10), tick=False):
        record.record(
            cluster_id=cluster.pk, changes=ObservedChanges(pods=[late]), at=START + HOUR + HOUR / 6
        )
        ledger.correct_late()
        catalogue.load_catalogue(actor=SYSTEM)
        ledger.price_late()
        once = list(LedgerDay.objects.order_by("pk").values())
        ledger.seal_due(), ledger.correct_late(), ledger.price_late()

    assert_days_equal_rows()
    assert list(LedgerDay.objects.order_by("pk").values()) == once
    amounts = {row["is_idle"]: row["cost_micros"] for row in once}
    assert amounts == {False: 503_000, True: 503_000}


@pytest.mark.usefixtures("catalogue")
def test_a_crash_while_sealing_leaves_neither_rows_nor_days(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("the worker died")

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        with monkeypatch.context() as patched:
            patched.setattr(UnpricedHour.objects, "bulk_create", crash)
            with pytest.raises(RuntimeError):
                ledger.seal_due()
        assert not SealedHour.objects.exists()
        assert not LedgerRow.objects.exists()
        assert not LedgerTeamHour.objects.exists()
        assert ledger.seal_due() == [START]

    assert_days_equal_rows()
    assert LedgerTeamDay.objects.get().cost_micros == int(G5 / MICRO)


@pytest.mark.usefixtures("catalogue")
def test_a_kept_estimate_equals_the_computed_one_until_its_hour_is_sealed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_hours, "MANY_NODES", 0)
    see(cluster, START)
    see(cluster, START + HOUR)
    span: dict[str, Any] = {"start": START, "end": START + 2 * HOUR}
    with time_machine.travel(START + HOUR + timedelta(minutes=2), tick=False):
        computed = [
            costs.table(team_slugs=teams, group_by=group, **span)
            for group in GroupBy
            for teams in (None, ["vision"], ["nlp"])
        ]
        assert (open_hours.renew(), open_hours.renew()) == (1, 0)
        assert OpenHour.objects.count() == 2
        kept = [
            costs.table(team_slugs=teams, group_by=group, **span)
            for group in GroupBy
            for teams in (None, ["vision"], ["nlp"])
        ]
        assert kept == computed
        assert computed[0].spend.estimated_amount == G5

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        assert ledger.seal_due() == [START]
        spend = costs.table(team_slugs=None, **span).spend
    assert [hour.hour for hour in OpenHour.objects.all()] == [START + HOUR]
    assert (spend.allocated_amount, spend.estimated_amount) == (G5, 0)
