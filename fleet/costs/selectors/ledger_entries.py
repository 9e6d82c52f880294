"""The rows of the ledger as values, for exports: the sealed ones, then the estimate."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, NullIf

from fleet.costs.domain.results import LedgerEntry
from fleet.costs.selectors import caller_parts, metering
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.models import Cluster, LedgerKind, LedgerRow, Node
from portal.core import clock


def entries(
    *, team_slugs: Collection[str] | None, row_filter: LedgerFilter
) -> Iterator[LedgerEntry]:
    """Yield the entries oldest first, sealed ones first. `team_slugs` None means the whole fleet, including idle.
    Sealed ones of deployments with callers are split by caller.
    """
    yield from caller_parts.split(_sealed(team_slugs, row_filter))
    yield from _unsealed(team_slugs, row_filter)


def _unsealed(
    team_slugs: Collection[str] | None, row_filter: LedgerFilter
) -> Iterator[LedgerEntry]:
    """Compute the entries of hours that are not sealed yet, one for each holder and node."""
    live = metering.estimate(
        start=row_filter.start, end=row_filter.end, now=clock.now(), team_slugs=team_slugs
    )
    return (entry for entry in live.entries if row_filter.matches(entry, team_slugs))


def _sealed(team_slugs: Collection[str] | None, row_filter: LedgerFilter) -> Iterator[LedgerEntry]:
    rows = row_filter.rows(team_slugs).annotate(
        region=_region(), node_gpu_milliseconds=_gpu_time_of_node()
    )
    for row in rows.order_by("hour", "pk").iterator(chunk_size=2000):
        is_adjustment = row.kind == LedgerKind.ADJUSTMENT
        yield LedgerEntry(
            hour=row.hour,
            cluster_name=row.cluster_name,
            node_uid=row.node_uid,
            node_name=row.node_name,
            instance_type=row.instance_type,
            region=row.region or "",
            kind=row.kind,
            team_slug=row.team_slug,
            namespace=row.namespace,
            workload_name=row.workload_name,
            labels=row.workload_labels,
            gpu_milliseconds=row.gpu_milliseconds,
            node_gpu_milliseconds=None if is_adjustment else row.node_gpu_milliseconds,
            cost_amount=row.cost_amount,
            usd_per_hour_amount=row.usd_per_hour_amount,
            price_source=row.price_source,
            capacity_type=row.capacity_type,
            sealed_at=row.sealed_at,
            is_demo=row.is_demo,
        )


def _region() -> Coalesce:
    """Return the node's region, or else its cluster's: as the hour was priced. Null if neither exists any more."""
    node = Node.objects.filter(uid=OuterRef("node_uid")).order_by("-pk")
    cluster = Cluster.objects.filter(name=OuterRef("cluster_name"))
    return Coalesce(
        NullIf(Subquery(node.values("region")[:1]), Value("")),
        Subquery(cluster.values("region")[:1]),
    )


def _gpu_time_of_node() -> Subquery:
    """Return a subquery of a node's GPU milliseconds in the hour: all holders and idle, including teams that are
    not part of the export.
    """
    rows: QuerySet[LedgerRow] = LedgerRow.objects.filter(
        ~Q(kind=LedgerKind.ADJUSTMENT), node_uid=OuterRef("node_uid"), hour=OuterRef("hour")
    )
    sums = rows.order_by().values("node_uid").annotate(total=Sum("gpu_milliseconds"))
    return Subquery(sums.values("total"))
