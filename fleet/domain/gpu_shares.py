"""One way to ask a cluster for GPUs, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One way to ask for GPUs. `usd_per_hour_amount` is for one replica; None is not known.

    `free_now` is how many such replicas fit on the GPUs that nobody holds; `nodes` is how many
    nodes of the type exist: 0 where one would be started for it.
    """

    instance_type: str
    gpu_name: str
    gpu_resource: str
    gpus: int
    vram_mib: int
    usd_per_hour_amount: Decimal | None
    price_source: str
    price_date: date | None
    free_now: int
    nodes: int
    is_simulated: bool
    # "whole", "mig", "mps" or "shared"; neighbours of a shared one hold the same memory, without a
    # wall.
    sharing: str = "whole"
