"""A cluster with one node and one pod as it is observed, and what the ledger then has."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from fleet.models import Cluster, LedgerRow
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from tests.fleet.objects import node, pod

HOUR = timedelta(hours=1)
G5 = Decimal("1.006000")


def see(cluster: Cluster, at: datetime, *, pods: list[dict[str, object]] | None = None) -> None:
    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing([node()], 50),
        pods=FullListing([pod()] if pods is None else pods, 50),
        at=at,
    )


def rows() -> list[tuple[str, str, Decimal]]:
    ledger_rows = LedgerRow.objects.order_by("hour", "pk")
    return [(row.kind, row.team_slug, row.cost_amount) for row in ledger_rows]
