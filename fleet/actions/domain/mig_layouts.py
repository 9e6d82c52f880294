"""MIG layouts of NVIDIA's MIG manager: the names of its default configuration, by what a GPU can be cut into.

From config-default.yaml of mig-parted v0.15: each `all-<profile>` cuts all GPUs of a node alike; `all-balanced`
mixes sizes; `all-disabled` gives whole GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet.gpus.domain.shares import MIG_PREFIX, WHOLE

CONFIG_LABEL: Final = "nvidia.com/mig.config"
STATE_LABEL: Final = "nvidia.com/mig.config.state"
CAPABLE_LABEL: Final = "nvidia.com/mig.capable"
STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
# The GPU operator gives it to nodes on which its MIG manager runs.
MANAGER_LABEL: Final = "nvidia.com/gpu.deploy.mig-manager"
SUCCESS: Final = "success"
FAILED: Final = "failed"
DISABLED: Final = "all-disabled"
BALANCED: Final = "all-balanced"
MIXED: Final = "mixed"
SINGLE: Final = "single"


@dataclass(frozen=True, slots=True)
class Layout:
    """A MIG layout: `slices` of one GPU, by profile. Without slices GPUs stay whole."""

    name: str
    slices: Mapping[str, int]

    def __str__(self) -> str:
        if not self.slices:
            return f"{self.name}: whole GPUs"
        parts = ", ".join(f"{count} x {profile}" for profile, count in self.slices.items())
        return f"{self.name}: {parts} per GPU"

    def resources(self, gpu_count: int, strategy: str) -> dict[str, int]:
        """Return what a node of `gpu_count` GPUs offers with this layout under the device plugin's strategy, by
        resource.
        """
        if not self.slices:
            return {WHOLE: gpu_count}
        if strategy == SINGLE:
            return {WHOLE: gpu_count * sum(self.slices.values())}
        return {f"{MIG_PREFIX}{profile}": gpu_count * n for profile, n in self.slices.items()}


_PROFILES: Final[tuple[tuple[re.Pattern[str], Mapping[str, int], Mapping[str, int]], ...]] = (
    (
        re.compile(r"a100.*40gb|a800.*40gb"),
        {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
        {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
    ),
    (
        re.compile(r"(a100|a800|h100|h800).*80gb"),
        {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
        {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
    ),
    (
        re.compile(r"h200"),
        {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
        {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1},
    ),
    (
        re.compile(r"(^|[^g])b200"),
        {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
        {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1},
    ),
    (
        re.compile(r"(^|[^g])b300"),
        {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
        {"1g.34gb": 2, "2g.67gb": 1, "3g.135gb": 1},
    ),
    (
        re.compile(r"rtx-pro-6000-blackwell"),
        {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
        {"1g.24gb": 2, "2g.48gb": 1},
    ),
)
# Products that Karpenter names without their memory, and those that state it nowhere: MiB above which it is 80 GB.
_FORTY_GB_MIB: Final = 45_000


def layouts_of(product: str, memory_mib: int) -> tuple[Layout, ...]:
    """Return the layouts of a GPU: whole GPUs first, then from the smallest slices on; empty for a GPU that is not
    known here.
    """
    name = _full_name(product, memory_mib)
    for pattern, profiles, balanced in _PROFILES:
        if pattern.search(name):
            alike = [Layout(f"all-{profile}", {profile: n}) for profile, n in profiles.items()]
            return (Layout(DISABLED, {}), *alike, Layout(BALANCED, balanced))
    return ()


def find(layouts: tuple[Layout, ...], name: str) -> Layout | None:
    return next((layout for layout in layouts if layout.name == name), None)


def _full_name(product: str, memory_mib: int) -> str:
    """Return the product's name in lowercase, with its memory if the name lacks it: "a100-80gb"."""
    name = product.lower()
    if re.search(r"a100|a800|h100|h800", name) and not re.search(r"\d+gb", name) and memory_mib:
        return f"{name}-{40 if memory_mib <= _FORTY_GB_MIB else 80}gb"
    return name
