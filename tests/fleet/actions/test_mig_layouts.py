"""The MIG layouts of the GPUs that can be cut."""

from __future__ import annotations

import pytest

from fleet.actions.domain import mig_layouts
from fleet.actions.domain.mig_layouts import BALANCED


@pytest.mark.parametrize(
    ("product", "memory", "smallest", "count"),
    [
        ("NVIDIA-A100-SXM4-40GB", 40960, "1g.5gb", 7),
        ("A100-PCIE-40GB", 0, "1g.5gb", 7),
        ("a100", 40960, "1g.5gb", 7),
        ("a100", 81920, "1g.10gb", 7),
        ("NVIDIA-A100-SXM4-80GB", 81920, "1g.10gb", 7),
        # Cut alike, the label of memory is that of a slice.
        ("NVIDIA-A100-SXM4-80GB", 9728, "1g.10gb", 7),
        ("NVIDIA-H100-80GB-HBM3", 81559, "1g.10gb", 7),
        ("NVIDIA-H200", 143771, "1g.18gb", 7),
        ("NVIDIA-B200", 183359, "1g.23gb", 7),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "1g.24gb", 4),
    ],
)
def test_layouts_of_the_gpus_that_can_be_cut(
    product: str, memory: int, smallest: str, count: int
) -> None:
    layouts = mig_layouts.layouts_of(product, memory)

    assert layouts[0].resources(8, "mixed") == {"nvidia.com/gpu": 8}
    assert layouts[1].resources(8, "mixed") == {f"nvidia.com/mig-{smallest}": 8 * count}
    assert layouts[1].resources(8, "single") == {"nvidia.com/gpu": 8 * count}
    assert layouts[-1].name == BALANCED


@pytest.mark.parametrize(
    "product", ["NVIDIA-A10G", "Tesla-T4", "NVIDIA-L40S", "NVIDIA-GB200", "a100", ""]
)
def test_no_layout_of_other_gpus(product: str) -> None:
    assert mig_layouts.layouts_of(product, 0) == ()


@pytest.mark.parametrize("product", ["a100-40gb", "a100-80gb", "h200", "b200", "b300"])
def test_no_layout_needs_more_than_a_gpu_has(product: str) -> None:
    """Seven compute slices and eight memory slices."""
    from fleet.gpus.domain.mig import memory_slices

    sizes = {"a100-40gb": 40960, "a100-80gb": 81920, "h200": 144384, "b200": 183359, "b300": 275000}
    for layout in mig_layouts.layouts_of(product, 0):
        compute = sum(int(profile[0]) * n for profile, n in layout.slices.items())
        memory = sum(memory_slices(p, sizes[product]) * n for p, n in layout.slices.items())

        assert compute <= 7, layout
        assert memory <= 8, layout
