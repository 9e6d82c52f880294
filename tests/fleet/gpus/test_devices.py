"""What is free of the devices that a DRA driver publishes, by what a claim selects."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.gpus.domain import claimed_gpus, devices, shares
from fleet.gpus.domain.claimed_gpus import ClaimedDevice
from fleet.gpus.domain.devices import DeviceRequest, Devices
from fleet.observation.domain import dra
from tests.fleet.dra_nodes import PRODUCT, claim, gpu, mig, resource_slice

ANY_GPU = DeviceRequest("gpu")
POOL = "dra-1"
# Two slices of 40 GB and the GPU itself take from the same memory.
COUNTERS: dict[str, Any] = {
    "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "8"}}}]
}


def takes(amount: int) -> dict[str, Any]:
    counters = {"memory": {"value": str(amount)}}
    return {"consumesCounters": [{"counterSet": "gpu-0", "counters": counters}]}


def of(*slices: dict[str, Any]) -> Devices:
    found = [one for one in map(dra.resource_slice, slices) if one is not None]
    return dra.collect_node_devices(found).devices


def test_a_claim_selects_by_product_memory_and_profile() -> None:
    found = of(resource_slice(POOL, gpu(0), gpu(1, "40Gi"), mig(2, "1g.10gb", "9856Mi")))

    assert (found.gpu_count, found.memory_mib, found.product) == (3, 81920, PRODUCT)
    assert found.units(ANY_GPU) == 2
    assert found.units(DeviceRequest("gpu", memory_gib=41)) == 1
    assert found.units(DeviceRequest("gpu", product="NVIDIA H100")) == 0
    assert found.units(DeviceRequest("mig", "1g.10gb", PRODUCT, 9)) == 1
    assert found.units(DeviceRequest("mig", "1g.10gb", PRODUCT, 10)) == 0
    assert found.units(DeviceRequest("mig", "2g.20gb")) == 0
    assert found.units(ANY_GPU, {(POOL, "gpu-0")}) == 1
    assert found.units(ANY_GPU, {("other-pool", "gpu-0")}) == 2


def test_slices_of_one_gpu_and_the_gpu_itself_are_not_free_together() -> None:
    halves = [mig(0, "3g.40gb", "40Gi", place, **takes(4)) for place in (0, 4)]
    found = of(
        resource_slice(POOL, gpu(0, **takes(8)), *halves),
        resource_slice(POOL, name="counters", **COUNTERS),
    )
    half = DeviceRequest("mig", "3g.40gb")

    assert found.gpu_count == 1
    assert (found.units(ANY_GPU), found.units(half)) == (1, 2)
    taken = {(POOL, halves[0]["name"])}
    assert (found.units(ANY_GPU, taken), found.units(half, taken)) == (0, 1)
    assert [found.has_free(device, taken) for device in found.all] == [False, False, True]
    assert found.units(half, {(POOL, "gpu-0")}) == 0


def test_a_tainted_device_and_a_withdrawn_slice_are_counted_and_not_free() -> None:
    taint: dict[str, Any] = {"taints": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]}
    found = of(resource_slice(POOL, gpu(0, **taint), gpu(1)))

    assert (found.gpu_count, found.units(ANY_GPU)) == (2, 1)
    gone = devices.from_json(found.withdrawn().to_json())
    assert (gone.gpu_count, gone.units(ANY_GPU)) == (2, 0)


def test_of_a_pool_only_the_newest_generation_counts() -> None:
    found = of(
        resource_slice(POOL, gpu(0), gpu(1), name="old", generation=1),
        resource_slice(POOL, mig(0, "7g.80gb", "80Gi"), name="new", generation=2),
    )

    assert [device.name for device in found.all] == ["gpu-0-mig-7g80gb-0"]


@pytest.mark.parametrize(
    "item",
    [
        resource_slice(POOL, gpu(0), driver="compute-domain.nvidia.com"),
        resource_slice("", gpu(0), allNodes=True),
    ],
)
def test_slices_of_other_drivers_and_of_no_node_are_left_out(item: dict[str, Any]) -> None:
    assert dra.resource_slice(item) is None


@pytest.mark.parametrize(
    "item",
    [
        claim("pending"),
        claim("of-another-driver", "nic-0", driver="dra.net"),
        claim("of-a-monitor", "gpu-0", adminAccess=True),
    ],
)
def test_claims_that_hold_no_gpu_are_left_out(item: dict[str, Any]) -> None:
    assert dra.claim(item) is None


def test_a_gpu_that_plugin_and_driver_both_offer_is_one() -> None:
    found = of(resource_slice(POOL, gpu(0), gpu(1)))

    both = shares.read_gpus({"nvidia.com/gpu.product": "A100"}, {"nvidia.com/gpu": "2"}, found)
    alone = shares.read_gpus({}, {}, found)

    assert (both.count, both.product) == (2, "A100")
    assert (alone.count, alone.product, alone.memory_mib) == (2, PRODUCT, 81920)


def test_units_of_a_pod_are_those_of_plugin_and_claims_once() -> None:
    held = [ClaimedDevice(POOL, "gpu-0", "nvidia.com/gpu", 1_000_000)]

    # Labelled, or turned into a claim by the scheduler: not requested of the plugin.
    assert claimed_gpus.with_devices(("", 0), ("nvidia.com/gpu", 1), held) == ("nvidia.com/gpu", 1)
    assert claimed_gpus.with_devices(("", 0), ("nvidia.com/gpu", 1), []) == ("nvidia.com/gpu", 1)
    both = claimed_gpus.with_devices(("nvidia.com/gpu", 1), ("nvidia.com/gpu", 1), held)
    assert both == ("nvidia.com/gpu", 2)
    assert claimed_gpus.units_of_plugin(*both, held) == 1
