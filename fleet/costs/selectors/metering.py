"""Facts for metering: nodes, allocations and prices, in a constant number of queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.db.models import Q

from fleet.costs.domain import ledger
from fleet.costs.domain.ledger import Allocation, Holder, LedgerPart, NodeLife
from fleet.costs.domain.results import LedgerEntry
from fleet.gpus.domain.intervals import HOUR, LeaseInterval, hours_between
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook
from fleet.models import Cluster, GpuLease, LedgerKind, Node, SealedHour
from portal.core.money import split_exactly

# Metering reads neither, and they would be most of what it fetches.
_LARGE_OF_NODES: Final = ("allocatable", "labels", "conditions", "taints", "xids")
LARGE_OF_CLUSTERS: Final = ("capabilities", "serving", "prometheus_ca_pem", "last_error")


@dataclass(frozen=True, slots=True)
class HourPrice:
    """The price of a whole node for an hour. The source names its day."""

    usd_per_hour_amount: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of a node that metering needs. `sealed_price` takes the place of the catalogue's, for an hour that
    was sealed with it.
    """

    cluster: Cluster
    node: Node
    allocations: tuple[Allocation, ...]
    labels: Mapping[Holder, dict[str, str]]
    book: PriceBook
    sealed_price: HourPrice | None = None

    def price_at(self, hour: datetime) -> HourPrice | None:
        if self.sealed_price is not None:
            return self.sealed_price
        price = self.book.find_node_price(self.node, hour.date())
        if price is None:
            return None
        return HourPrice(price.usd_per_hour_amount, f"{price.source}, {price.valid_from}")

    def exists_in(self, hour: datetime) -> bool:
        return (
            LeaseInterval(self.node.first_seen_at, self.node.gone_at).overlap_ms(hour, hour + HOUR)
            > 0
        )

    def parts(self, hour: datetime, *, until: datetime | None = None) -> list[LedgerPart]:
        """Return the node's hour split by holder. The cost is 0 if the price is unknown."""
        price = self.price_at(hour)
        life = NodeLife(
            gpu_count=self.node.gpu_count,
            interval=LeaseInterval(self.node.first_seen_at, self.node.gone_at),
            usd_per_hour_amount=price.usd_per_hour_amount if price else None,
        )
        return ledger.split_hour(life, self.allocations, hour, split=split_exactly, until=until)


def facts_of_nodes(
    *,
    start: datetime,
    end: datetime,
    cluster_ids: Collection[int] | None = None,
    node_ids: Collection[int] | None = None,
    team_slugs: Collection[str] | None = None,
) -> list[NodeFacts]:
    """Return the GPU nodes that existed in [start, end), with the leases on them in that time. With teams, only
    nodes on which they held GPUs.
    """
    overlaps = Q(gone_at=None) | Q(gone_at__gt=start)
    nodes = Node.objects.filter(overlaps, gpu_count__gt=0, first_seen_at__lt=end)
    if cluster_ids is not None:
        nodes = nodes.filter(cluster_id__in=cluster_ids)
    if node_ids is not None:
        nodes = nodes.filter(pk__in=node_ids)
    if team_slugs is not None:
        held = GpuLease.objects.filter(overlap_of_leases(start), started_at__lt=end)
        nodes = nodes.filter(pk__in=held.filter(team_slug__in=team_slugs).values("node"))
    large = (*_LARGE_OF_NODES, *(f"cluster__{name}" for name in LARGE_OF_CLUSTERS))
    gpu_nodes = list(nodes.select_related("cluster").defer(*large).order_by("pk"))
    allocations, labels = _allocations_of(gpu_nodes, start, end)
    book = prices.book({node.instance_type for node in gpu_nodes})
    return [
        NodeFacts(node.cluster, node, tuple(allocations[node.pk]), labels[node.pk], book)
        for node in gpu_nodes
    ]


def overlap_of_leases(start: datetime) -> Q:
    return Q(ended_at=None) | Q(ended_at__gt=start)


def _allocations_of(
    nodes: list[Node], start: datetime, end: datetime
) -> tuple[dict[int, list[Allocation]], dict[int, dict[Holder, dict[str, str]]]]:
    allocations: dict[int, list[Allocation]] = defaultdict(list)
    labels: dict[int, dict[Holder, dict[str, str]]] = defaultdict(dict)
    leases = GpuLease.objects.filter(
        overlap_of_leases(start), node__in=[node.pk for node in nodes], started_at__lt=end
    ).values_list(
        *("node_id", "team_slug", "namespace", "workload__name", "workload__labels", "pod_name"),
        *("share_ppm", "started_at", "ended_at"),
    )
    for node_id, team, namespace, workload, of_workload, pod, share, started, ended in leases:
        holder = Holder(team, namespace, workload or pod[:63])
        allocations[node_id].append(Allocation(holder, share, LeaseInterval(started, ended)))
        labels[node_id][holder] = dict(of_workload or {})
    return allocations, labels


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of unsealed costs. `unpriced` maps a node's id to its number of hours without a price."""

    entries: tuple[LedgerEntry, ...]
    unpriced: Mapping[int, int]


def estimate(
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    without_clusters: Collection[int] = (),
    only_clusters: Collection[int] | None = None,
    node_ids: Collection[int] | None = None,
    team_slugs: Collection[str] | None = None,
) -> Estimate:
    """Estimate the costs so far of the unsealed hours in [start, end). With teams, of the nodes on which they held
    GPUs, with all of the holders there.

    A cluster counts up to its last observation: later events are unknown.
    """
    clusters = Cluster.objects.exclude(last_seen_at=None).exclude(pk__in=without_clusters)
    clusters = clusters.defer(*LARGE_OF_CLUSTERS)
    if only_clusters is not None:
        clusters = clusters.filter(pk__in=only_clusters)
    open_hours = dict(_unsealed_hours(list(clusters), start, min(end, now)))
    if not open_hours:
        return Estimate((), {})
    first = min(min(hours) for hours in open_hours.values())
    all_facts = facts_of_nodes(
        start=first,
        end=min(end, now),
        cluster_ids=open_hours.keys(),
        node_ids=node_ids,
        team_slugs=team_slugs,
    )
    entries: list[LedgerEntry] = []
    unpriced: Counter[int] = Counter()
    for node_facts in all_facts:
        until = min(now, _known_to(node_facts.cluster))
        for hour in open_hours[node_facts.cluster.pk]:
            if not node_facts.exists_in(hour):
                continue
            entries += _entries(node_facts, hour, node_facts.parts(hour, until=until))
            if node_facts.price_at(hour) is None:
                unpriced[node_facts.node.pk] += 1
    return Estimate(tuple(entries), unpriced)


def _known_to(cluster: Cluster) -> datetime:
    """Return the time of the last full listing or watcher heartbeat, whichever is later."""
    times = (cluster.created_at, cluster.last_seen_at, cluster.watch_seen_at)
    return max(time for time in times if time is not None)


def _unsealed_hours(
    clusters: Sequence[Cluster], start: datetime, end: datetime
) -> Iterator[tuple[int, list[datetime]]]:
    if not clusters:
        return
    sealed = set(
        SealedHour.objects.filter(
            cluster__in=clusters, hour__gte=start - HOUR, hour__lt=end
        ).values_list("cluster_id", "hour")
    )
    for cluster in clusters:
        hours = [
            hour
            for hour in hours_between(max(start, cluster.created_at), end)
            if hour >= start and (cluster.pk, hour) not in sealed
        ]
        if hours:
            yield cluster.pk, hours


def _entries(node_facts: NodeFacts, hour: datetime, parts: list[LedgerPart]) -> list[LedgerEntry]:
    price = node_facts.price_at(hour)
    node_gpu_milliseconds = sum(part.gpu_milliseconds for part in parts)
    return [
        LedgerEntry(
            hour=hour,
            cluster_name=node_facts.cluster.name,
            node_uid=node_facts.node.uid,
            region=node_facts.node.region or node_facts.cluster.region,
            node_name=node_facts.node.name,
            instance_type=node_facts.node.instance_type,
            kind=LedgerKind.ALLOCATED if part.holder else LedgerKind.IDLE,
            team_slug=part.holder.team_slug if part.holder else "",
            namespace=part.holder.namespace if part.holder else "",
            workload_name=part.holder.workload_name if part.holder else "",
            labels=node_facts.labels.get(part.holder, {}) if part.holder else {},
            gpu_milliseconds=part.gpu_milliseconds,
            node_gpu_milliseconds=node_gpu_milliseconds,
            cost_amount=part.cost_amount,
            usd_per_hour_amount=price.usd_per_hour_amount if price else None,
            price_source=price.source if price else "",
            capacity_type=node_facts.node.capacity_type,
        )
        for part in parts
    ]
