"""The Fleet page's data: nodes, their GPUs and the holders of each. None is "not known"."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from fleet.gpus.domain.shares import GPU_PPM
from fleet.observation.domain.node_notices import Notice

OTHER_TEAM = "other team"


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """One pod's share of one GPU. Pods of other teams have only the label "other team"."""

    label: str
    share_ppm: int
    is_visible: bool
    team_slug: str = ""
    namespace: str = ""
    workload_name: str = ""
    deployment: str = ""
    pod_name: str = ""
    since: datetime | None = None
    # 0..1; the source is "GPU utilisation" or "Triton busy time".
    utilisation: float | None = None
    utilisation_source: str = ""


@dataclass(frozen=True, slots=True)
class GpuTile:
    """One GPU of a node. Its position is for display: Kubernetes does not report which device a pod
    got. `free_ppm` is the free part in millionths of the GPU, `tainted_ppm` what no new claim gets, and `taint` why.
    """

    holders: tuple[GpuHolder, ...]
    free_ppm: int
    tainted_ppm: int = 0
    taint: str = ""

    @property
    def is_free(self) -> bool:
        return not self.holders and not self.tainted_ppm


@dataclass(frozen=True, slots=True)
class NodeOverview:
    id: int
    cluster_id: int
    cluster_name: str
    name: str
    instance_type: str
    capacity_type: str
    zone: str
    gpu_product: str
    gpu_count: int
    gpu_memory_mib: int
    is_ready: bool
    is_schedulable: bool
    is_simulated: bool
    usd_per_hour_amount: Decimal | None
    tiles: tuple[GpuTile, ...]
    last_seen_at: datetime
    notices: tuple[Notice, ...] = ()
    # Taints that a pod has to tolerate to start here, but for those that every pod tolerates.
    reserved_by: tuple[str, ...] = ()

    @property
    def free_gpus(self) -> Decimal:
        return Decimal(sum(tile.free_ppm for tile in self.tiles)) / GPU_PPM

    @property
    def idle_usd_per_hour_amount(self) -> Decimal | None:
        if self.usd_per_hour_amount is None or not self.gpu_count:
            return None
        idle = self.free_gpus + Decimal(sum(tile.tainted_ppm for tile in self.tiles)) / 1_000_000
        return self.usd_per_hour_amount * idle / self.gpu_count


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node without its holders. `held_ppm` is the sum of their shares, which may be more than it has."""

    id: int
    cluster_id: int
    cluster_name: str
    name: str
    instance_type: str
    capacity_type: str
    gpu_product: str
    gpu_count: int
    is_simulated: bool
    held_ppm: int
    usd_per_hour_amount: Decimal | None
    # Neither held nor offered: a taint of its device takes it out.
    tainted_ppm: int = 0

    @property
    def idle_ppm(self) -> int:
        """The GPU share that is paid for and not held, in millionths of a GPU."""
        return max(0, self.gpu_count * GPU_PPM - self.held_ppm)

    @property
    def free_ppm(self) -> int:
        return max(0, self.idle_ppm - self.tainted_ppm)

    @property
    def free_gpus(self) -> Decimal:
        return Decimal(self.free_ppm) / GPU_PPM


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that requests GPUs and has no node yet. `deployment` is the workload's label; it and the names are empty
    for pods of other teams. Without instance types any node will do.
    """

    cluster_id: int
    cluster_name: str
    namespace: str
    name: str
    is_visible: bool
    team_slug: str
    workload_name: str
    gpu_resource: str
    gpu_units: int
    reason: str
    message: str
    created_at: datetime
    deployment: str = ""
    instance_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """The overview of the fleet, nodes with the most idle GPUs first. Totals cover the selected clusters."""

    nodes: tuple[NodeSummary, ...]
    pending: tuple[PendingPod, ...]
    gpus: int
    allocated_gpus: Decimal
    tainted_gpus: Decimal
    # Of nodes with a known price.
    idle_usd_per_hour_amount: Decimal
    # Mean over the measured allocated GPUs, weighted by their share.
    utilisation: float | None
