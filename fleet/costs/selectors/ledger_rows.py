"""The ledger rows behind a number, one page at a time, and the estimate that is part of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet, Sum

from fleet.costs.domain.results import ZERO, LedgerEntry
from fleet.costs.selectors import metering
from fleet.models import LedgerKind, LedgerRow
from portal.core import clock

PAGE_SIZE = 50
IDLE = Q(kind=LedgerKind.IDLE) | Q(kind=LedgerKind.ADJUSTMENT, namespace="")


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """None and empty fields do not filter; a `team_slug` of "" selects unattributed rows."""

    start: datetime
    end: datetime
    team_slug: str | None = None
    model: str = ""
    deployment: str = ""
    revision: str = ""
    cluster_name: str = ""
    is_idle: bool | None = None

    @property
    def labels(self) -> dict[str, str]:
        pairs = {"model": self.model, "deployment": self.deployment, "revision": self.revision}
        return {name: value for name, value in pairs.items() if value}


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Newest first. `estimated` is on the first page only; the totals are over all pages."""

    sealed: Page[LedgerRow]
    estimated: Sequence[LedgerEntry]
    sealed_amount: Decimal
    estimated_amount: Decimal

    @property
    def total_amount(self) -> Decimal:
        return self.sealed_amount + self.estimated_amount


def page(
    *, team_slugs: Collection[str] | None, row_filter: LedgerFilter, number: str | None = None
) -> LedgerPage:
    """`team_slugs` None means the whole fleet, including unattributed pods and idle."""
    rows = _sealed(team_slugs, row_filter)
    sealed = Paginator(rows.order_by("-hour", "pk"), PAGE_SIZE).get_page(number)
    estimated = _estimated(team_slugs, row_filter)
    return LedgerPage(
        sealed=sealed,
        estimated=() if sealed.has_previous() else estimated,
        sealed_amount=rows.aggregate(total=Sum("cost_amount"))["total"] or ZERO,
        estimated_amount=sum((entry.cost_amount for entry in estimated), ZERO),
    )


def _sealed(team_slugs: Collection[str] | None, row_filter: LedgerFilter) -> QuerySet[LedgerRow]:
    rows = LedgerRow.objects.filter(hour__gte=row_filter.start, hour__lt=row_filter.end)
    if team_slugs is not None:
        rows = rows.filter(team_slug__in=team_slugs).exclude(IDLE)
    if row_filter.is_idle is not None:
        rows = rows.filter(IDLE) if row_filter.is_idle else rows.exclude(IDLE)
    if row_filter.team_slug is not None:
        rows = rows.filter(team_slug=row_filter.team_slug)
    if row_filter.cluster_name:
        rows = rows.filter(cluster_name=row_filter.cluster_name)
    return rows.filter(**{f"workload_labels__{k}": v for k, v in row_filter.labels.items()})


def _estimated(
    team_slugs: Collection[str] | None, row_filter: LedgerFilter
) -> tuple[LedgerEntry, ...]:
    estimate = metering.estimate(start=row_filter.start, end=row_filter.end, now=clock.now())
    return tuple(entry for entry in estimate.entries if _matches(entry, team_slugs, row_filter))


def _matches(
    entry: LedgerEntry, team_slugs: Collection[str] | None, row_filter: LedgerFilter
) -> bool:
    is_idle = entry.kind == LedgerKind.IDLE
    if team_slugs is not None and (is_idle or entry.team_slug not in team_slugs):
        return False
    return (
        row_filter.is_idle in (None, is_idle)
        and row_filter.team_slug in (None, entry.team_slug)
        and row_filter.cluster_name in ("", entry.cluster_name)
        and all(str(entry.labels.get(k, "")) == v for k, v in row_filter.labels.items())
    )
