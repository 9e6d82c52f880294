"""Which tile of a node's picture shows what: Kubernetes does not say which device most pods have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleet.capacity.domain.overview import GpuHolder, GpuTile
from fleet.gpus.domain.device_taints import Blocked
from fleet.gpus.domain.shares import GPU_PPM


def place(
    holders: list[GpuHolder], gpu_count: int, blocked: Sequence[Blocked] = ()
) -> list[GpuTile]:
    """Place the shares on tiles: holders first, then what no new claim gets."""
    return _place_taints(place_holders(holders, gpu_count), blocked)


def place_holders(holders: list[GpuHolder], gpu_count: int) -> list[GpuTile]:
    """Place holders on GPUs, the largest first. A holder of several GPUs appears on each of them; in an
    overcommitted cluster the rest goes onto the last GPU.
    """
    free = [GPU_PPM] * gpu_count
    placed: list[list[GpuHolder]] = [[] for _ in range(gpu_count)]
    for holder in sorted(holders, key=lambda holder: -holder.share_ppm):
        remaining = holder.share_ppm
        while remaining > 0 and gpu_count:
            part = min(remaining, GPU_PPM)
            index = next((i for i, space in enumerate(free) if space >= part), gpu_count - 1)
            placed[index].append(holder)
            free[index] = max(0, free[index] - part)
            remaining -= part
    return [GpuTile(tuple(holders), space) for holders, space in zip(placed, free, strict=True)]


def _place_taints(tiles: list[GpuTile], blocked: Sequence[Blocked]) -> list[GpuTile]:
    """Take what taints block out of what is free, the last GPUs first."""
    placed = list(tiles)
    for one in sorted(blocked, key=lambda one: -one.ppm):
        free = [i for i, tile in enumerate(placed) if tile.free_ppm and not tile.tainted_ppm]
        if not free:
            break
        index = max(free, key=lambda i: (placed[i].free_ppm >= one.ppm, i))
        part = min(one.ppm, placed[index].free_ppm)
        placed[index] = replace(
            placed[index],
            free_ppm=placed[index].free_ppm - part,
            tainted_ppm=part,
            taint=one.reason,
        )
    return placed
