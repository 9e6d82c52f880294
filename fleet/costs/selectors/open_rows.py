"""The estimate behind a number of the ledger page: holders of a node, or groups where it is kept by group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, QuerySet, Sum

from fleet.costs.domain.results import ZERO, LedgerEntry
from fleet.costs.selectors import metering, open_hours
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.models import OpenHourSum
from portal.core import clock


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A holder on all nodes of a large cluster."""

    hour: datetime
    cluster_name: str
    team_slug: str
    model: str
    deployment: str
    revision: str
    is_idle: bool
    is_priced: bool
    gpu_milliseconds: int
    cost_amount: Decimal


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The first rows, of `count` in all; the amount is that of all."""

    entries: Sequence[LedgerEntry]
    groups: Sequence[OpenGroup]
    count: int
    amount: Decimal

    @property
    def shown_count(self) -> int:
        return len(self.entries) + len(self.groups)

    @property
    def has_more(self) -> bool:
        return self.count > self.shown_count


def list_rows(
    *, team_slugs: Collection[str] | None, row_filter: LedgerFilter, limit: int
) -> OpenRows:
    """List at most `limit` rows, the most expensive groups after the holders of small clusters."""
    slugs = team_slugs
    if row_filter.team_slug is not None and row_filter.is_idle is not True:
        slugs = [row_filter.team_slug]
    kept = open_hours.list_kept()
    live = metering.estimate(
        start=row_filter.start,
        end=row_filter.end,
        now=clock.now(),
        without_clusters={hour.cluster_id for hour in kept},
        team_slugs=slugs,
    )
    entries = [entry for entry in live.entries if row_filter.matches(entry, team_slugs)]
    rows = _kept(team_slugs, row_filter, [hour.pk for hour in kept])
    totals = rows.aggregate(count=Count("pk"), micros=Sum("cost_micros"))
    shown = entries[:limit]
    groups = rows.order_by("-cost_micros", "pk")[: limit - len(shown)] if kept else ()
    amount = sum((entry.cost_amount for entry in entries), ZERO)
    return OpenRows(
        entries=shown,
        groups=[_group(row) for row in groups],
        count=len(entries) + totals["count"],
        amount=amount + Decimal(totals["micros"] or 0).scaleb(-6),
    )


def _kept(
    team_slugs: Collection[str] | None, row_filter: LedgerFilter, open_hour_ids: Sequence[int]
) -> QuerySet[OpenHourSum]:
    rows = OpenHourSum.objects.filter(
        open_hour__in=open_hour_ids,
        open_hour__hour__gte=row_filter.start,
        open_hour__hour__lt=row_filter.end,
    )
    rows = row_filter.filter_sums(rows, team_slugs)
    if row_filter.cluster_name:
        rows = rows.filter(open_hour__cluster__name=row_filter.cluster_name)
    return rows.select_related("open_hour__cluster")


def _group(row: OpenHourSum) -> OpenGroup:
    return OpenGroup(
        hour=row.open_hour.hour,
        cluster_name=row.open_hour.cluster.name,
        team_slug=row.team_slug,
        model=row.model,
        deployment=row.deployment,
        revision=row.revision,
        is_idle=row.is_idle,
        is_priced=row.is_priced,
        gpu_milliseconds=row.gpu_milliseconds,
        cost_amount=Decimal(row.cost_micros).scaleb(-6),
    )
