"""The Fleet page's nodes, grouped into pools: same cluster, instance type and capacity type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from fleet.capacity.domain.overview import FleetOverview, GpuTile, Holder, NodeView

# A pool with more nodes shows all of them on its own page.
_NODES_OF_A_POOL = 24
_LEVELS = 5
_WHOLE_PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """One holder, or the free part, of one GPU. `width` is in percent of the tile."""

    text: str
    css: str
    width: int
    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class NodeRow:
    node: NodeView
    tiles: Sequence[Sequence[Part]]


@dataclass(frozen=True, slots=True)
class Pool:
    cluster_name: str
    instance_type: str
    capacity_type: str
    gpu_product: str
    is_simulated: bool
    node_count: int
    gpu_count: int
    free_gpus: Decimal
    # None if the price of any node is not known.
    usd_per_hour_amount: Decimal | None
    rows: Sequence[NodeRow]

    @property
    def key(self) -> str:
        return f"{self.cluster_name}/{self.instance_type}/{self.capacity_type}"

    @property
    def hidden_nodes(self) -> int:
        return self.node_count - len(self.rows)


@dataclass(frozen=True, slots=True)
class Board:
    overview: FleetOverview
    pools: Sequence[Pool]

    @property
    def allocated_percent(self) -> Decimal | None:
        return (
            self.overview.allocated_gpus * 100 / self.overview.gpus if self.overview.gpus else None
        )

    @property
    def free_gpus(self) -> Decimal:
        return self.overview.gpus - self.overview.allocated_gpus

    @property
    def unpriced_nodes(self) -> int:
        return sum(node.usd_per_hour_amount is None for node in self.overview.nodes)


def build(overview: FleetOverview, *, pool: str = "", only_idle: bool = False) -> Board:
    """Pools with the most idle GPUs first. `pool` selects one pool with all of its nodes."""
    groups: dict[str, list[NodeView]] = {}
    for node in overview.nodes:
        if not only_idle or node.free_gpus > 0:
            key = f"{node.cluster_name}/{node.instance_type}/{node.capacity_type}"
            groups.setdefault(key, []).append(node)
    at_most = None if pool else _NODES_OF_A_POOL
    selected = {pool: groups.get(pool, [])} if pool else groups
    pools = [_pool(nodes, at_most) for nodes in selected.values() if nodes]
    return Board(overview, sorted(pools, key=lambda pool_row: (-pool_row.free_gpus, pool_row.key)))


def _pool(nodes: Sequence[NodeView], at_most: int | None) -> Pool:
    first = nodes[0]
    prices = [node.usd_per_hour_amount for node in nodes]
    known = [price for price in prices if price is not None]
    return Pool(
        cluster_name=first.cluster_name,
        instance_type=first.instance_type,
        capacity_type=first.capacity_type,
        gpu_product=first.gpu_product,
        is_simulated=any(node.is_simulated for node in nodes),
        node_count=len(nodes),
        gpu_count=sum(node.gpu_count for node in nodes),
        free_gpus=sum((node.free_gpus for node in nodes), Decimal(0)),
        usd_per_hour_amount=sum(known, Decimal(0)) if len(known) == len(prices) else None,
        rows=[NodeRow(node, [_parts(tile) for tile in node.tiles]) for node in nodes[:at_most]],
    )


def _parts(tile: GpuTile) -> Sequence[Part]:
    if tile.is_free:
        return [Part("free", "free", 100, "free")]
    return list(_holders(tile))


def _holders(tile: GpuTile) -> Iterable[Part]:
    alone = len(tile.holders) == 1 and not tile.free_ppm
    for holder in tile.holders:
        share = min(holder.share_ppm, _WHOLE_PPM)
        width = 100 if alone else max(1, round(share / 10_000))
        yield Part(holder.label, _level(holder), width, _title(holder), _url(holder))
    if tile.free_ppm:
        yield Part("", "free", round(tile.free_ppm / 10_000), f"{tile.free_ppm / 10_000:.0f}% free")


def _level(holder: Holder) -> str:
    if holder.utilisation is None:
        return "use-unknown"
    return f"use-{min(int(holder.utilisation * _LEVELS), _LEVELS - 1)}"


def _title(holder: Holder) -> str:
    if not holder.is_visible:
        return holder.label
    use = "utilisation not known"
    if holder.utilisation is not None:
        use = f"{holder.utilisation:.0%} {holder.utilisation_source}".strip()
    share = f"{holder.share_ppm / _WHOLE_PPM:g} GPU"
    return f"{holder.team_slug}/{holder.label} · {holder.pod_name} · {share} · {use}"


def _url(holder: Holder) -> str:
    if not holder.is_visible or not holder.deployment:
        return ""
    return f"/deployments/{holder.team_slug}/{holder.deployment}"
