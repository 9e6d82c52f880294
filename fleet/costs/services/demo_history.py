"""Two months of past usage for the demo's charts. All rows have is_demo set.

As in the real ledger, the rows of a node and hour sum to the price of that hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db import transaction

from fleet.gpus.selectors import prices
from fleet.models import Cluster, LedgerKind, LedgerRow, Workload, WorkloadHour
from fleet.telemetry.services import days
from portal.accounts.models import Team

# The longest two months: of any day, this month and as many days before it.
DAYS: Final = 62
_HOUR: Final = timedelta(hours=1)
_HOUR_MS: Final = 3_600_000
_CENTS: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class PastNode:
    """A node of the demo's history. `uid` is that of a node that exists; empty: it is made up like its hours."""

    name: str
    instance_type: str
    gpus: int
    uid: str = ""
    capacity_type: str = "on-demand"


@dataclass(frozen=True, slots=True)
class PastWorkload:
    """One replica with so many GPUs on each of the nodes. `hours` are its running hours of each day, between
    `first_day` and `last_day` days ago.
    """

    team: str
    deployment: str
    revision: int
    nodes: tuple[str, ...]
    gpus: int
    first_day: int
    last_day: int
    hours: range
    peak_requests: int
    mean_us: int
    wait_us: int = 0
    # Of the workload that runs now; None: it is made up too.
    labels: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        return f"{self.deployment}-r{self.revision}"

    def ran_at(self, hour: datetime, until: datetime) -> bool:
        days_ago = (until - hour) / timedelta(days=1)
        return self.last_day < days_ago <= self.first_day and hour.hour in self.hours


_NODES: Final = (
    PastNode("local-a10g-1", "g5.xlarge", 1),
    PastNode("local-a10g-2", "g5.xlarge", 1),
    PastNode("local-t4-1", "g4dn.12xlarge", 4),
)
ALL_DAY: Final = range(24)
_WORKLOADS: Final = (
    PastWorkload("vision", "ocr", 1, ("local-a10g-1",), 1, DAYS, 9, ALL_DAY, 135_000, 21_000),
    PastWorkload("vision", "ocr", 2, ("local-a10g-1",), 1, 9, 0, ALL_DAY, 190_000, 14_000),
    PastWorkload(
        "vision", "defects", 1, ("local-t4-1",), 1, DAYS, 18, range(8, 17), 60_000, 36_000
    ),
    PastWorkload("vision", "defects", 2, ("local-t4-1",), 1, 18, 0, range(6, 20), 75_000, 33_000),
    PastWorkload("nlp", "spelling", 1, ("local-a10g-2",), 1, DAYS, 32, ALL_DAY, 80_000, 8_000),
    PastWorkload("nlp", "intent", 1, ("local-a10g-2",), 1, 15, 0, ALL_DAY, 190_000, 9_000),
    PastWorkload("nlp", "translate", 1, ("local-t4-1",), 2, 12, 1, range(6), 40_000, 180_000),
)


def create(*, cluster_id: int, until: datetime) -> int:
    """Create the history before the hour of `until`, once; return the number of ledger rows."""
    if LedgerRow.objects.filter(is_demo=True).exists():
        return 0
    return _write(cluster_id, until, _NODES, _WORKLOADS)


def extend(
    *,
    cluster_id: int,
    until: datetime,
    nodes: Sequence[PastNode],
    workloads: Sequence[PastWorkload],
) -> int:
    """Extend the history to nodes that exist, once. Returns the number of ledger rows."""
    uids = [node.uid for node in nodes]
    if LedgerRow.objects.filter(is_demo=True, node_uid__in=uids).exists():
        return 0
    return _write(cluster_id, until, nodes, workloads)


def _write(
    cluster_id: int,
    until: datetime,
    nodes: Sequence[PastNode],
    workloads: Sequence[PastWorkload],
) -> int:
    cluster = Cluster.objects.get(pk=cluster_id)
    end = until.replace(minute=0, second=0, microsecond=0)
    hours = [end - _HOUR * n for n in range(DAYS * 24, 0, -1)]
    with transaction.atomic():
        rows = [row for node in nodes for row in _ledger(cluster, node, workloads, hours, end)]
        LedgerRow.objects.bulk_create(rows, batch_size=500)
        for past in workloads:
            _use(cluster, past, hours, end)
        days.forget(start=hours[0])
    return len(rows)


def _ledger(
    cluster: Cluster,
    node: PastNode,
    workloads: Sequence[PastWorkload],
    hours: list[datetime],
    end: datetime,
) -> Iterator[LedgerRow]:
    price = prices.price_of(
        instance_type=node.instance_type,
        region=cluster.region,
        capacity_type=node.capacity_type,
        on=end.date(),
    )
    if price is None:
        return
    own = [past for past in workloads if node.name in past.nodes]
    for hour in hours:
        common = {
            "hour": hour,
            "cluster_name": cluster.name,
            "node_uid": node.uid or f"demo-{node.name}",
            "node_name": node.name,
            "instance_type": node.instance_type,
            "capacity_type": node.capacity_type,
            "usd_per_hour_amount": price.usd_per_hour_amount,
            "price_source": price.source,
            "is_demo": True,
            "sealed_at": hour + _HOUR,
        }
        running = [past for past in own if past.ran_at(hour, end)]
        yield from _rows_of(node, price.usd_per_hour_amount, running, common)


def _rows_of(
    node: PastNode, amount: Decimal, running: Sequence[PastWorkload], common: Mapping[str, Any]
) -> Iterator[LedgerRow]:
    """Yield the ledger rows of one hour of a node. Unheld GPUs are idle."""
    free_gpus, free_amount = node.gpus, amount
    for past in running:
        cost = (amount * past.gpus / node.gpus).quantize(_CENTS)
        free_gpus, free_amount = free_gpus - past.gpus, free_amount - cost
        yield LedgerRow(
            **common,
            kind=LedgerKind.ALLOCATED,
            team_slug=past.team,
            namespace=past.team,
            workload_name=past.name,
            workload_labels=_labels(past),
            gpu_milliseconds=past.gpus * _HOUR_MS,
            cost_amount=cost,
        )
    if free_gpus:
        yield LedgerRow(
            **common,
            kind=LedgerKind.IDLE,
            gpu_milliseconds=free_gpus * _HOUR_MS,
            cost_amount=free_amount,
        )


def _use(cluster: Cluster, past: PastWorkload, hours: list[datetime], end: datetime) -> None:
    ran = [hour for hour in hours if past.ran_at(hour, end)]
    workload, _ = Workload.objects.get_or_create(
        cluster=cluster,
        namespace=past.team,
        name=past.name,
        defaults={
            "team": Team.objects.get(slug=past.team),
            "labels": _labels(past),
            "triton_models": [past.deployment],
            "created_at": ran[0],
            "retired_at": ran[-1] + _HOUR,
        },
    )
    WorkloadHour.objects.bulk_create(
        [_hour_of(workload, past, hour) for hour in ran],
        batch_size=500,
        # What was read stays.
        ignore_conflicts=True,
    )


def _hour_of(workload: Workload, past: PastWorkload, hour: datetime) -> WorkloadHour:
    """Return deterministic traffic of an hour: high by day, low at night and at weekends."""
    daylight = 0.25 + 0.75 * math.sin(math.pi * hour.hour / 23) ** 2
    weekend = 0.45 if hour.weekday() >= 5 else 1.0
    ripple = 1 + 0.12 * math.sin(hour.toordinal() * 2.7 + hour.hour * 1.3)
    requests = int(past.peak_requests * daylight * weekend * ripple)
    duration_us = requests * past.mean_us
    compute_us = duration_us * 78 // 100
    waiting_us = requests * past.wait_us
    return WorkloadHour(
        workload=workload,
        start=hour,
        request_success=requests,
        request_failure=requests // 700,
        inference_count=requests,
        execution_count=(requests * 5 + 7) // 8,
        request_duration_us=duration_us + waiting_us,
        queue_duration_us=duration_us * 12 // 100 + waiting_us,
        compute_input_us=duration_us * 4 // 100,
        compute_infer_us=compute_us,
        compute_output_us=duration_us * 3 // 100,
        observed_ms=_HOUR_MS * len(past.nodes),
        gpu_busy_ms=min(compute_us // 1000, _HOUR_MS * past.gpus * len(past.nodes)),
        gpu_busy_source="triton",
        is_demo=True,
    )


def _labels(past: PastWorkload) -> dict[str, str]:
    if past.labels is not None:
        return {**past.labels, "demo": "true"}
    return {
        "deployment": past.deployment,
        "revision": str(past.revision),
        "model": past.deployment,
        "version": str(past.revision),
        "demo": "true",
    }
