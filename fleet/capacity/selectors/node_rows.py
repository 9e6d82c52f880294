"""Ledger rows of one node, summed by holder, and the estimate of its unsealed hours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.db.models import F, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDay

from fleet.capacity.domain.node_history import HolderKey
from fleet.costs.domain.results import LedgerEntry, Step
from fleet.costs.selectors import metering
from fleet.models import LedgerKind, LedgerRow, Node, Workload
from portal.core import clock
from portal.core.money import MICRO

_HOLDER: Final = ("team_slug", "namespace", "workload_name")
_ADJUSTMENT: Final = Q(kind=LedgerKind.ADJUSTMENT)


@dataclass(frozen=True, slots=True)
class HolderSum:
    """One holder in one hour or day; adjustments are included."""

    at: datetime
    holder: HolderKey
    gpu_milliseconds: int
    cost_amount: Decimal
    # The highest of the hour; None: no price is known.
    usd_per_hour_amount: Decimal | None
    price_source: str
    is_sealed: bool = True


@dataclass(frozen=True, slots=True)
class WorkloadName:
    id: int
    deployment: str


def sums(node: Node, start: datetime, end: datetime, step: Step) -> list[HolderSum]:
    """Return sealed rows in [start, end), the newest first.

    Two queries, because adjustments have an index of their own.
    """
    at = TruncDay("hour") if step is Step.DAY else F("hour")
    original = _grouped(_rows(node).exclude(_ADJUSTMENT), at, start, end)
    adjustments = _grouped(_rows(node).filter(_ADJUSTMENT), at, start, end)
    return [*_read(original), *_read(adjustments)]


def newest_sums(
    node: Node, start: datetime, end: datetime, *, limit: int
) -> tuple[list[HolderSum], datetime]:
    """Return the newest whole hours in [start, end) that have together about `limit` sums, at least one hour, and
    the start of the oldest; `start` where nothing was left out.
    """
    at = F("hour")
    original = _rows(node).exclude(_ADJUSTMENT)
    sealed = list(_read(_grouped(original, at, start, end)[: limit + 1]))
    first = start
    if len(sealed) > limit:
        first = _oldest_whole(sealed)
        sealed = list(_read(_grouped(original, at, first, end)))
    adjustments = _grouped(_rows(node).filter(_ADJUSTMENT), at, first, end)
    return [*sealed, *_read(adjustments)], first


def _rows(node: Node) -> QuerySet[LedgerRow]:
    return LedgerRow.objects.filter(node_uid=node.uid, cluster_name=node.cluster.name)


def _oldest_whole(rows: Sequence[HolderSum]) -> datetime:
    """The last hour may be cut off, unless it is the only one."""
    times = sorted({row.at for row in rows})
    return times[1] if len(times) > 1 else times[0]


def _grouped(
    rows: QuerySet[LedgerRow], at: Any, start: datetime, end: datetime
) -> QuerySet[LedgerRow, tuple[Any, ...]]:
    return (
        rows.filter(hour__gte=start, hour__lt=end)
        .annotate(at=at)
        .values_list("at", *_HOLDER)
        .annotate(
            Sum("gpu_milliseconds"),
            Sum("cost_amount"),
            Max("usd_per_hour_amount"),
            Max("price_source"),
        )
        .order_by("-at")
    )


def _read(rows: QuerySet[LedgerRow, tuple[Any, ...]]) -> Iterator[HolderSum]:
    for at, team, namespace, name, gpu_ms, cost, price, source in rows:
        # SQLite adds decimals as floating point.
        amount = cost.quantize(MICRO)
        yield HolderSum(at, HolderKey(team, namespace, name), gpu_ms, amount, price, source)


def estimate_holders(node: Node, start: datetime, end: datetime) -> list[HolderSum]:
    """Return the estimated holders of the hours that are not sealed yet, by hour."""
    live = metering.estimate(
        start=start,
        end=end,
        now=clock.now(),
        only_clusters=[node.cluster_id],
        node_ids=[node.pk],
    )
    return [_of_entry(entry) for entry in live.entries]


def _of_entry(entry: LedgerEntry) -> HolderSum:
    return HolderSum(
        at=entry.hour,
        holder=HolderKey(entry.team_slug, entry.namespace, entry.workload_name),
        gpu_milliseconds=entry.gpu_milliseconds,
        cost_amount=entry.cost_amount,
        usd_per_hour_amount=entry.usd_per_hour_amount,
        price_source=entry.price_source,
        is_sealed=False,
    )


def map_workloads(node: Node, holders: Collection[HolderKey]) -> dict[HolderKey, WorkloadName]:
    """Return the workloads that fleet knows of these holders."""
    rows = Workload.objects.filter(
        cluster_id=node.cluster_id,
        namespace__in={holder.namespace for holder in holders},
        name__in={holder.workload_name for holder in holders},
    ).values_list("namespace", "name", "pk", "labels")
    known = {
        (namespace, name): WorkloadName(pk, str(labels.get("deployment", "")))
        for namespace, name, pk, labels in rows
    }
    return {
        holder: known[holder.namespace, holder.workload_name]
        for holder in holders
        if (holder.namespace, holder.workload_name) in known
    }
