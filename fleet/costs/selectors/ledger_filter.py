"""Which rows of the ledger stand behind a number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from fleet.costs.domain.results import LedgerEntry
from fleet.models import LedgerKind, LedgerRow

IDLE: Final = Q(kind=LedgerKind.IDLE) | Q(kind=LedgerKind.ADJUSTMENT, namespace="")


def label(name: str) -> Cast:
    """Return a label of a row's workload, which `rows_of_a_deployment` indexes. It is cast, because SQLite takes
    what is compared with a part of a JSON column itself for JSON.
    """
    return Cast(KT(f"workload_labels__{name}"), TextField())


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """A filter of ledger rows. None and empty fields do not filter; a `team_slug` of "" selects unattributed rows."""

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

    def rows(self, team_slugs: Collection[str] | None) -> QuerySet[LedgerRow]:
        """Return the matching rows. `team_slugs` None means the whole fleet, including unattributed pods and idle."""
        rows = LedgerRow.objects.filter(hour__gte=self.start, hour__lt=self.end)
        if team_slugs is not None:
            rows = rows.filter(team_slug__in=team_slugs).exclude(IDLE)
        if self.is_idle is not None:
            rows = rows.filter(IDLE) if self.is_idle else rows.exclude(IDLE)
        if self.team_slug is not None:
            rows = rows.filter(team_slug=self.team_slug)
        if self.cluster_name:
            rows = rows.filter(cluster_name=self.cluster_name)
        for name, value in self.labels.items():
            column = f"{name}_label"
            rows = rows.alias(**{column: label(name)}).filter(**{column: value})
        return rows

    def matches(self, entry: LedgerEntry, team_slugs: Collection[str] | None) -> bool:
        """Return whether the filter matches an entry that is not sealed. Its time is not checked."""
        is_idle = entry.kind == LedgerKind.IDLE
        if team_slugs is not None and (is_idle or entry.team_slug not in team_slugs):
            return False
        return (
            self.is_idle in (None, is_idle)
            and self.team_slug in (None, entry.team_slug)
            and self.cluster_name in ("", entry.cluster_name)
            and all(str(entry.labels.get(k, "")) == v for k, v in self.labels.items())
        )

    def filter_sums(self, sums: QuerySet[Any], team_slugs: Collection[str] | None) -> QuerySet[Any]:
        """Filter sums by team and idle and, where labels filter, by labels. They are not filtered by cluster."""
        if team_slugs is not None:
            sums = sums.filter(team_slug__in=team_slugs, is_idle=False)
        if self.is_idle is not None:
            sums = sums.filter(is_idle=self.is_idle)
        if self.team_slug is not None:
            sums = sums.filter(team_slug=self.team_slug)
        return sums.filter(**self.labels)
