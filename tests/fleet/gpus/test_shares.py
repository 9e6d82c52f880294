from __future__ import annotations

import pytest

from fleet.gpus.domain import shares
from fleet.gpus.domain.shares import NodeGpus

A100_80 = NodeGpus(count=8, memory_mib=81920, product="NVIDIA-A100-SXM4-80GB", replicas=1)
A100_40 = NodeGpus(count=8, memory_mib=40960, product="NVIDIA-A100-SXM4-40GB", replicas=1)
SHARED_4 = NodeGpus(count=1, memory_mib=22888, product="NVIDIA-A10G", replicas=4)


@pytest.mark.parametrize(
    ("resource", "units", "gpus", "ppm"),
    [
        ("nvidia.com/gpu", 2, A100_80, 2_000_000),
        ("nvidia.com/gpu.shared", 1, SHARED_4, 250_000),
        ("nvidia.com/gpu", 1, SHARED_4, 250_000),
        ("nvidia.com/mig-1g.10gb", 1, A100_80, 125_000),
        ("nvidia.com/mig-1g.20gb", 1, A100_80, 250_000),
        ("nvidia.com/mig-3g.40gb", 1, A100_80, 500_000),
        ("nvidia.com/mig-7g.80gb", 1, A100_80, 1_000_000),
        ("nvidia.com/mig-1g.5gb", 1, A100_40, 125_000),
        ("nvidia.com/mig-1g.10gb", 1, A100_40, 250_000),
        ("nvidia.com/mig-1g.10gb.me", 1, A100_80, 125_000),
    ],
)
def test_share_of_a_gpu(resource: str, units: int, gpus: NodeGpus, ppm: int) -> None:
    assert shares.share_ppm(resource, units, gpus) == ppm


@pytest.mark.parametrize(
    ("memory_mib", "most"),
    [
        (
            40960,
            {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
        ),
        (81920, {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1}),
        (144384, {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1}),
        (183359, {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "7g.180gb": 1}),
        (98304, {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1}),
    ],
)
def test_slices_of_one_gpu_never_exceed_it(memory_mib: int, most: dict[str, int]) -> None:
    gpus = NodeGpus(count=1, memory_mib=memory_mib, product="", replicas=1)

    for profile, count in most.items():
        ppm = count * shares.share_ppm(f"nvidia.com/mig-{profile}", 1, gpus)
        assert ppm <= shares.GPU_PPM, profile


def test_shared_gpus_without_labels_are_counted_from_what_the_node_offers() -> None:
    gpus = shares.read_gpus({"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu.shared": "8"})

    assert gpus.count == 2


def test_node_without_gpus_has_none() -> None:
    assert shares.read_gpus({}, {"cpu": "4"}).count == 0
