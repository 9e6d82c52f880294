"""The made-up history obeys the rules of the real ledger."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import time_machine

from fleet.clusters.services import clusters
from fleet.costs.selectors import cost_changes
from fleet.costs.services import demo_history
from fleet.models import LedgerRow, WorkloadHour
from fleet.prices.services import catalogue as prices
from portal.accounts.policy import SYSTEM
from tests.accounts import make_team

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)


@pytest.fixture
def cluster_id() -> int:
    for slug in ("vision", "nlp"):
        make_team(slug=slug)
    prices.load_catalogue(actor=SYSTEM)
    draft = clusters.ClusterDraft(
        name="local", kind="local", gateway_url="http://127.0.0.1:8090", kubeconfig_path="/nowhere"
    )
    return clusters.register(actor=SYSTEM, draft=draft)


def test_rows_of_each_node_and_hour_sum_to_its_price(cluster_id: int) -> None:
    demo_history.create(cluster_id=cluster_id, until=NOW)

    sums: dict[tuple[str, datetime], Decimal] = defaultdict(Decimal)
    price = {}
    for row in LedgerRow.objects.all():
        sums[row.node_uid, row.hour] += row.cost_amount
        price[row.node_uid, row.hour] = row.usd_per_hour_amount
    assert len(sums) == 3 * 62 * 24
    assert sums == price


def test_history_is_marked_ends_before_now_and_is_written_once(cluster_id: int) -> None:
    made = demo_history.create(cluster_id=cluster_id, until=NOW)

    assert made == LedgerRow.objects.filter(is_demo=True).count() > 0
    assert not LedgerRow.objects.filter(hour__gte=NOW.replace(minute=0)).exists()
    assert not WorkloadHour.objects.filter(is_demo=False).exists()
    assert demo_history.create(cluster_id=cluster_id, until=NOW) == 0


@pytest.mark.parametrize("day", [2, 21, 30])
def test_every_month_has_one_before_to_compare_with(cluster_id: int, day: int) -> None:
    now = NOW.replace(day=day)
    start = now.replace(day=1, hour=0, minute=0)
    demo_history.create(cluster_id=cluster_id, until=now)

    with time_machine.travel(now, tick=False):
        change = cost_changes.explain(team_slugs=None, start=start, end=now, has_idle=True)

    assert change.data_from is None
    assert change.before_amount > 0
    assert {part.key.label for part in change.parts if part.kind == "new"} == (
        set() if day == 2 else {"nlp/intent", "nlp/translate"}
    )


def test_no_gpu_is_busier_than_time_passes(cluster_id: int) -> None:
    demo_history.create(cluster_id=cluster_id, until=NOW)

    assert all(hour.gpu_busy_ms <= 2 * hour.observed_ms for hour in WorkloadHour.objects.all())
