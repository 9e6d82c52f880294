"""Labels as GPU Feature Discovery writes them: single labels a slice's memory and counts slices, others the GPU's."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from fleet.gpus.domain import shares

# Of one whole GPU: product label, memory label, and each profile with how many of it a GPU has.
GPUS: dict[str, tuple[int, dict[str, int]]] = {
    "NVIDIA-A30": (
        24576,
        {"1g.6gb": 4, "1g.6gb.me": 1, "2g.12gb": 2, "2g.12gb.me": 1, "4g.24gb": 1},
    ),
    "NVIDIA-A100-SXM4-40GB": (
        40960,
        {"1g.5gb": 7, "1g.5gb.me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1}
        | {"7g.40gb": 1},
    ),
    "NVIDIA-A100-80GB-PCIe": (
        81920,
        {"1g.10gb": 7, "1g.10gb.me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1}
        | {"7g.80gb": 1},
    ),
    "NVIDIA-H100-80GB-HBM3": (
        81559,
        {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1}
        | {"7g.80gb": 1},
    ),
    "NVIDIA-H100-PCIe": (81559, {"1g.10gb": 7, "1g.20gb": 4, "3g.40gb": 2, "7g.80gb": 1}),
    "NVIDIA-H100-NVL": (
        95830,
        {"1g.12gb": 7, "1g.12gb.me": 1, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1}
        | {"7g.94gb": 1},
    ),
    "NVIDIA-GH200-480GB": (97871, {"1g.12gb": 7, "1g.24gb": 4, "3g.48gb": 2, "7g.96gb": 1}),
    "NVIDIA-H20": (97871, {"1g.12gb": 7, "1g.24gb": 4, "3g.48gb": 2, "7g.96gb": 1}),
    "NVIDIA-H200": (
        143771,
        {"1g.18gb": 7, "1g.18gb.me": 1, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1}
        | {"7g.141gb": 1},
    ),
    "NVIDIA-B200": (
        183359,
        {"1g.23gb": 7, "1g.23gb.me": 1, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1}
        | {"7g.180gb": 1},
    ),
    "NVIDIA-B300-SXM6-AC": (
        275040,
        {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    ),
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": (
        97887,
        {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
    ),
}


class Slice(NamedTuple):
    product: str
    memory_mib: int
    profile: str
    per_gpu: int

    @property
    def labelled_mib(self) -> int:
        """A slice has some less than its name says: 4864 of 5 GB, 9728 of 10 GB, 11008 of 12 GB."""
        return int(self.profile.partition("g.")[2].partition("gb")[0]) * 1024 * 95 // 100

    @property
    def ppm(self) -> int:
        """Memory slices are eighths, also of a GPU that has quarters."""
        gigabytes = int(self.profile.partition("g.")[2].partition("gb")[0])
        return round(gigabytes * 1024 * 8 / self.memory_mib) * shares.GPU_PPM // 8


SLICES = [
    Slice(product, memory, profile, count)
    for product, (memory, profiles) in GPUS.items()
    for profile, count in profiles.items()
]


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_single_strategy_counts_slices_and_labels_their_memory(gpus: int) -> None:
    for one in SLICES:
        count = gpus * one.per_gpu
        labels = _single(one) | {"nvidia.com/gpu.count": str(count)}

        known = shares.read_gpus(labels, {"nvidia.com/gpu": str(count)})

        assert (one, known.count, known.product) == (one, gpus, one.product)
        share = shares.share_ppm("nvidia.com/gpu", 1, known)
        assert (one, share) == (one, one.ppm)
        assert share * one.per_gpu <= shares.GPU_PPM, one
        assert (one, shares.sharing("nvidia.com/gpu", known)) == (one, "mig")
        memory = shares.vram_mib("nvidia.com/gpu", 1, known)
        assert memory == one.labelled_mib or one.per_gpu == 1, one


def test_a_slice_is_the_same_share_in_both_strategies() -> None:
    for one in SLICES:
        mixed = shares.read_gpus(_mixed(one), {f"nvidia.com/mig-{one.profile}": str(one.per_gpu)})
        single = shares.read_gpus(_single(one), {"nvidia.com/gpu": str(one.per_gpu)})

        assert (one, mixed.count, single.count) == (one, 1, 1)
        of_mixed = shares.share_ppm(f"nvidia.com/mig-{one.profile}", 1, mixed)
        of_single = shares.share_ppm("nvidia.com/gpu", 1, single)
        assert (one, of_mixed, of_single) == (one, one.ppm, one.ppm)


@pytest.mark.parametrize("replicas", [2, 4])
def test_time_sliced_slices_share_the_slice(replicas: int) -> None:
    for one in SLICES:
        for known, resource in _time_sliced(one, replicas):
            assert (one, resource, known.count) == (one, resource, 1)
            assert (one, resource, known.product) == (one, resource, one.product)
            share = shares.share_ppm(resource, 1, known)
            assert (one, resource, share) == (one, resource, one.ppm // replicas)
            assert (one, resource, shares.sharing(resource, known)) == (one, resource, "shared")


def _time_sliced(one: Slice, replicas: int) -> list[tuple[shares.NodeGpus, str]]:
    """The GPUs and the resource in each strategy, and by each name of a shared resource."""
    product = f"{one.product}-MIG-{one.profile}-SHARED"
    single = _single(one) | {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    mixed = _mixed(one) | {f"nvidia.com/mig-{one.profile}.replicas": str(replicas)}
    offered = str(one.per_gpu * replicas)
    return [
        (shares.read_gpus(single, {"nvidia.com/gpu": offered}), "nvidia.com/gpu"),
        (shares.read_gpus(single, {"nvidia.com/gpu.shared": offered}), "nvidia.com/gpu.shared"),
        (shares.read_gpus(mixed, {}), f"nvidia.com/mig-{one.profile}"),
        (shares.read_gpus(mixed, {}), f"nvidia.com/mig-{one.profile}.shared"),
    ]


@pytest.mark.parametrize(
    ("labels", "offered", "count", "ppm", "sharing"),
    [
        ({"replicas": "1", "sharing-strategy": "none"}, {"gpu": "4"}, 4, 1_000_000, "whole"),
        # MIG is on and the strategy is none: no sharing is stated.
        ({"replicas": "0"}, {"gpu": "4"}, 4, 1_000_000, "whole"),
        (
            {"replicas": "4", "sharing-strategy": "time-slicing", "product": "Tesla-T4-SHARED"},
            {"gpu": "16"},
            *(4, 250_000, "shared"),
        ),
        (
            {"replicas": "4", "sharing-strategy": "time-slicing"},
            {"gpu": "0", "gpu.shared": "16"},
            *(4, 250_000, "shared"),
        ),
        (
            {"replicas": "4", "sharing-strategy": "mps", "product": "Tesla-T4-SHARED"},
            {"gpu": "16"},
            *(4, 250_000, "mps"),
        ),
        ({"replicas": "4", "sharing-strategy": "mps"}, {"gpu.shared": "16"}, 4, 250_000, "mps"),
    ],
)
def test_whole_and_shared_gpus(
    labels: dict[str, str], offered: dict[str, str], count: int, ppm: int, sharing: str
) -> None:
    whole = {"count": "4", "memory": "15360", "product": "Tesla-T4"} | labels
    known = shares.read_gpus(
        {f"nvidia.com/gpu.{name}": value for name, value in whole.items()},
        {f"nvidia.com/{name}": value for name, value in offered.items()},
    )
    resource = "nvidia.com/gpu.shared" if "gpu.shared" in offered else "nvidia.com/gpu"

    assert (known.count, known.product, known.memory_mib) == (count, "Tesla-T4", 15360)
    assert shares.share_ppm(resource, 1, known) == ppm
    assert shares.sharing(resource, known) == sharing


def test_gpus_that_are_not_cut_alike_offer_nothing_with_the_single_strategy() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
        "nvidia.com/gpu.count": "0",
        "nvidia.com/gpu.replicas": "0",
        "nvidia.com/gpu.memory": "0",
        "nvidia.com/mig.strategy": "single",
    }

    known = shares.read_gpus(labels, {"nvidia.com/gpu": "0"})

    assert (known.count, known.product) == (0, "NVIDIA-A100-SXM4-40GB")
    assert not known.single_profile


def test_karpenter_states_the_whole_gpu_beside_the_slices() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.10gb",
        "nvidia.com/gpu.count": "32",
        "nvidia.com/gpu.memory": "9728",
        "karpenter.k8s.aws/instance-gpu-count": "8",
        "karpenter.k8s.aws/instance-gpu-memory": "40960",
    }

    known = shares.read_gpus(labels, {"nvidia.com/gpu": "32"})

    assert (known.count, known.memory_mib) == (8, 40960)
    assert shares.share_ppm("nvidia.com/gpu", 1, known) == 250_000
    assert shares.vram_mib("nvidia.com/gpu", 1, known) == 9728


def test_slices_of_an_unknown_product_are_counted_by_their_profile() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-X1-MIG-2g.50gb",
        "nvidia.com/gpu.count": "6",
        "nvidia.com/gpu.memory": "50000",
    }

    known = shares.read_gpus(labels, {"nvidia.com/gpu": "6"})

    assert known.count == 2
    assert shares.share_ppm("nvidia.com/gpu", 1, known) == 250_000


def _single(one: Slice) -> dict[str, str]:
    return {
        "nvidia.com/gpu.product": f"{one.product}-MIG-{one.profile}",
        "nvidia.com/gpu.count": str(one.per_gpu),
        "nvidia.com/gpu.memory": str(one.labelled_mib),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.strategy": "single",
    }


def _mixed(one: Slice) -> dict[str, str]:
    """GFD keeps the labels of whole GPUs, and states no replicas of those that are cut."""
    return {
        "nvidia.com/gpu.product": one.product,
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": str(one.memory_mib),
        "nvidia.com/gpu.replicas": "0",
        f"nvidia.com/mig-{one.profile}.count": str(one.per_gpu),
        f"nvidia.com/mig-{one.profile}.memory": str(one.labelled_mib),
        f"nvidia.com/mig-{one.profile}.replicas": "1",
        "nvidia.com/mig.strategy": "mixed",
    }
