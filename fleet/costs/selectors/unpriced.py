"""Nodes and sealed hours without a known price."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet

from fleet.costs.domain.results import UnpricedNode
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook
from fleet.models import Cluster, GpuLease, LedgerRow, Node, UnpricedHour


def hours_with_a_price(cluster: Cluster, *, max_hours: int) -> dict[datetime, list[int]]:
    """Return the sealed hours without a price for which one is known now, with their nodes, oldest hours first."""
    waiting = UnpricedHour.objects.filter(node__cluster=cluster)
    nodes = Node.objects.filter(pk__in=waiting.values("node")).select_related("cluster")
    book = prices.book(set(nodes.values_list("instance_type", flat=True)))
    priced = [node.pk for node in nodes if _has_a_price(node, book)]
    rows = waiting.filter(node__in=priced).order_by("hour", "node")
    hours = rows.values_list("hour", flat=True).distinct().order_by("hour")[:max_hours]
    nodes_by_hour: dict[datetime, list[int]] = defaultdict(list)
    for hour, node_id in rows.filter(hour__in=list(hours)).values_list("hour", "node"):
        nodes_by_hour[hour].append(node_id)
    return nodes_by_hour


def list_nodes(
    *,
    team_slugs: Collection[str] | None,
    start: datetime,
    end: datetime,
    running: Mapping[int, int],
) -> tuple[UnpricedNode, ...]:
    """List the nodes with hours of unknown price in [start, end), by name; `running` maps a node's id to its
    unsealed ones. With teams, only nodes on which they held GPUs in that time.
    """
    rows = UnpricedHour.objects.filter(hour__gte=start, hour__lt=end).values_list("node")
    hours = Counter(dict(rows.annotate(Count("pk")).order_by()))
    hours.update(running)
    if not hours:
        return ()
    nodes = Node.objects.filter(pk__in=hours)
    if team_slugs is not None:
        leases = GpuLease.objects.filter(team_slug__in=team_slugs, started_at__lt=end)
        leases = leases.exclude(ended_at__lte=start)
        nodes = nodes.filter(pk__in=leases.values("node"))
    # Without the clusters' capabilities, which are large and would come once for each node.
    rows_of_nodes = nodes.order_by("cluster__name", "name", "pk").values_list(
        *("pk", "cluster__name", "name", "instance_type", "capacity_type"),
        *("region", "cluster__region"),
    )
    return tuple(
        UnpricedNode(cluster, name, kind, capacity_type, region or of_cluster, hours[pk])
        for pk, cluster, name, kind, capacity_type, region, of_cluster in rows_of_nodes
    )


def teams_with_hours(*, start: datetime, end: datetime) -> set[str]:
    """Return the teams that held GPUs in [start, end) on nodes with sealed hours of unknown price in it."""
    waiting = UnpricedHour.objects.filter(hour__gte=start, hour__lt=end)
    leases = GpuLease.objects.filter(node__in=waiting.values("node"), started_at__lt=end)
    leases = leases.exclude(ended_at__lte=start)
    return set(leases.values_list("team_slug", flat=True).distinct().order_by())


def filter_unpriced(rows: QuerySet[LedgerRow]) -> QuerySet[LedgerRow]:
    """Return the rows whose node still has no price for that hour."""
    waiting = UnpricedHour.objects.filter(node__uid=OuterRef("node_uid"), hour=OuterRef("hour"))
    return rows.filter(Exists(waiting))


def _has_a_price(node: Node, book: PriceBook) -> bool:
    """A price is valid from its day on, and the first one also before it: any price is enough."""
    return book.has(prices.key_of(node))
