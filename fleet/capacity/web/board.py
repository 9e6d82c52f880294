"""The Fleet page's nodes, grouped into pools: same cluster, instance type and capacity type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from fleet.capacity.domain.overview import (
    FleetOverview,
    GpuHolder,
    GpuTile,
    NodeOverview,
    NodeSummary,
)
from fleet.capacity.selectors.notices import NoticedNode
from fleet.gpus.domain import neuron
from fleet.gpus.domain.shares import GPU_PPM
from portal.core.definitions.counts import format_count
from portal.core.definitions.figures import format_percent

# Of each pool, and of all together: a pool with more has pages of its own.
_NODES_OF_A_POOL = 24
_NODES_IN_ALL = 72
_FEWEST = 4
NODES_PER_PAGE = 60
_LEVELS = 5
# The last one is a node with a notice, however much of it is held.
_CELLS = tuple(f'<i class="h{level}"></i>' for level in range(_LEVELS + 1))


@dataclass(frozen=True, slots=True)
class TilePart:
    """One holder, or the free part, of one GPU. `width` is in percent of the tile."""

    text: str
    css: str
    width: int
    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class NodeRow:
    node: NodeOverview
    tiles: Sequence[Sequence[TilePart]]

    @property
    def tiles_html(self) -> SafeString:
        """The tiles as capacity/_gpu.html shows one. Rendering hundreds by template would take most of the page's
        time.
        """
        css = "gpu sim" if self.node.is_simulated else "gpu"
        tiles = ((css, format_html_join("", "{}", map(_part_html, parts))) for parts in self.tiles)
        return format_html_join("", '<div class="{}">{}</div>', tiles)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of alike nodes on the board. `map_levels` has one level for each node, from 0 (free) to 4 (all GPUs
    held); empty while all of its nodes are shown.
    """

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
    map_levels: Sequence[int] = ()

    @property
    def map_cells(self) -> SafeString:
        # Thousands of them, of five kinds.
        return mark_safe("".join(_CELLS[level] for level in self.map_levels))  # noqa: S308  our own

    @property
    def map_label(self) -> str:
        free, full = self.map_levels.count(0), self.map_levels.count(_LEVELS - 1)
        some = len(self.map_levels) - free - full - self.noticed_nodes
        label = (
            f"{format_count(self.node_count, 'node')}: {free} free, {some} partly held, {full} held"
        )
        return f"{label}, {self.noticed_nodes} with a notice" if self.noticed_nodes else label

    @property
    def noticed_nodes(self) -> int:
        """The number of nodes on the map that have a notice."""
        return self.map_levels.count(_LEVELS)

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
    noticed: Sequence[NoticedNode] = ()

    @property
    def allocated_percent(self) -> Decimal | None:
        return (
            self.overview.allocated_gpus * 100 / self.overview.gpus if self.overview.gpus else None
        )

    @property
    def free_gpus(self) -> Decimal:
        return self.overview.gpus - self.overview.allocated_gpus - self.overview.tainted_gpus

    @property
    def has_neuron(self) -> bool:
        return any(_is_neuron(pool) for pool in self.pools)

    @property
    def unpriced_nodes(self) -> int:
        return sum(node.usd_per_hour_amount is None for node in self.overview.nodes)


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of the overview that is shown: a page of nodes of one pool, or the first nodes of each pool."""

    groups: Mapping[str, Sequence[NodeSummary]]
    first: int
    at_most: int

    @property
    def shown(self) -> list[int]:
        return [node.id for nodes in self.groups.values() for node in self.slice_nodes(nodes)]

    def slice_nodes(self, nodes: Sequence[NodeSummary]) -> Sequence[NodeSummary]:
        return nodes[self.first : self.first + self.at_most]


def select(
    overview: FleetOverview, *, pool: str = "", only_idle: bool = False, page: int = 1
) -> Selection:
    groups: dict[str, list[NodeSummary]] = {}
    for node in overview.nodes:
        if not only_idle or node.free_ppm > 0:
            key = f"{node.cluster_name}/{node.instance_type}/{node.capacity_type}"
            groups.setdefault(key, []).append(node)
    if pool:
        of_pool = {pool: groups[pool]} if pool in groups else {}
        return Selection(of_pool, (page - 1) * NODES_PER_PAGE, NODES_PER_PAGE)
    each = max(_FEWEST, min(_NODES_OF_A_POOL, _NODES_IN_ALL // max(len(groups), 1)))
    return Selection(groups, 0, each)


def _is_neuron(pool: Pool) -> bool:
    return neuron.is_product(pool.gpu_product)


def build(
    overview: FleetOverview,
    selection: Selection,
    views: Sequence[NodeOverview],
    noticed: Sequence[NoticedNode] = (),
) -> Board:
    """Build the board, pools with the most idle GPUs first. `views` are the nodes of the selection."""
    by_name = {(view.cluster_id, view.name): view for view in views}
    marked = {node.id for node in noticed}
    pools = [_pool(nodes, selection, by_name, marked) for nodes in selection.groups.values()]
    pools.sort(key=lambda pool_row: (-pool_row.free_gpus, pool_row.key))
    return Board(overview, pools, noticed)


def _pool(
    nodes: Sequence[NodeSummary],
    selection: Selection,
    views: Mapping[tuple[int, str], NodeOverview],
    marked: Collection[int],
) -> Pool:
    first = nodes[0]
    prices = [node.usd_per_hour_amount for node in nodes]
    known = [price for price in prices if price is not None]
    shown = [
        views[node.cluster_id, node.name]
        for node in selection.slice_nodes(nodes)
        if (node.cluster_id, node.name) in views
    ]
    return Pool(
        cluster_name=first.cluster_name,
        instance_type=first.instance_type,
        capacity_type=first.capacity_type,
        gpu_product=first.gpu_product,
        is_simulated=any(node.is_simulated for node in nodes),
        node_count=len(nodes),
        gpu_count=sum(node.gpu_count for node in nodes),
        free_gpus=Decimal(sum(node.free_ppm for node in nodes)) / GPU_PPM,
        usd_per_hour_amount=sum(known, Decimal(0)) if len(known) == len(prices) else None,
        rows=[NodeRow(node, list_parts(node.tiles)) for node in shown],
        map_levels=[
            _LEVELS if node.tainted_ppm or node.id in marked else _map_level(node) for node in nodes
        ]
        if len(shown) < len(nodes)
        else (),
    )


def _map_level(node: NodeSummary) -> int:
    """Return the level of a node on the map. 0 and 4 are exact: nothing, and everything, is held."""
    if not node.free_ppm:
        return _LEVELS - 1
    held = node.gpu_count * GPU_PPM - node.free_ppm
    return min(-(-held * (_LEVELS - 2) // (node.gpu_count * GPU_PPM)), _LEVELS - 2)


def list_parts(tiles: Sequence[GpuTile]) -> list[Sequence[TilePart]]:
    return [_parts(tile) for tile in tiles]


def _parts(tile: GpuTile) -> Sequence[TilePart]:
    if tile.is_free:
        return [TilePart("free", "free", 100, "free")]
    return list(_holders(tile))


@lru_cache(maxsize=4096)
def _part_html(part: TilePart) -> tuple[SafeString]:
    """Kept: a holder of eight GPUs is eight equal parts, and most are as they were when a page asked last."""
    css, rest = f"part w-{part.width} {part.css}", (part.title, part.text)
    if part.url:
        link = '<a class="{}" href="{}" title="{}">{}</a>'
        return (format_html(link, css, part.url, *rest),)
    return (format_html('<span class="{}" title="{}">{}</span>', css, *rest),)


def _holders(tile: GpuTile) -> Iterable[TilePart]:
    alone = len(tile.holders) == 1 and not tile.free_ppm and not tile.tainted_ppm
    for holder in tile.holders:
        share = min(holder.share_ppm, GPU_PPM)
        width = 100 if alone else max(1, round(share / 10_000))
        yield TilePart(holder.label, _level(holder), width, _title(holder), _url(holder))
    if tile.tainted_ppm:
        width = round(tile.tainted_ppm / 10_000)
        yield TilePart("tainted", "tainted", max(1, width), f"Not offered: {tile.taint}")
    if tile.free_ppm:
        yield TilePart(
            "", "free", round(tile.free_ppm / 10_000), f"{tile.free_ppm / 10_000:.0f}% free"
        )


def _level(holder: GpuHolder) -> str:
    if holder.utilisation is None:
        return "use-unknown"
    return f"use-{min(int(holder.utilisation * _LEVELS), _LEVELS - 1)}"


def _title(holder: GpuHolder) -> str:
    if not holder.is_visible:
        return holder.label
    use = "utilisation not known"
    if holder.utilisation is not None:
        use = f"{format_percent(holder.utilisation)} {holder.utilisation_source}".strip()
    share = f"{holder.share_ppm / GPU_PPM:g} GPU"
    return f"{holder.team_slug}/{holder.label} · {holder.pod_name} · {share} · {use}"


def _url(holder: GpuHolder) -> str:
    return deployment_url(holder.team_slug, holder.deployment) if holder.is_visible else ""


def deployment_url(team_slug: str, deployment: str) -> str:
    """Return the URL of the page of a deployment or, as "batch/name", of a batch job, which another app serves. Empty
    without either.
    """
    if not (team_slug and deployment):
        return ""
    return f"/{team_slug}/{'' if '/' in deployment else 'deployments/'}{deployment}"
