"""The GPU share of a resource request, in millionths of one GPU (ppm). A Neuron device counts as a GPU.

A time-sliced or MPS replica is 1/replicas of a GPU; a MIG slice is its memory slices / 8, so that the
shares of one GPU never exceed it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fleet.gpus.domain import devices, mig, neuron

# One whole GPU.
GPU_PPM = 1_000_000
WHOLE = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = mig.PREFIX
_COUNT_LABELS = (
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "nvidia.com/gpu.count",
)
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
)
_MEMORY_LABELS = (
    "karpenter.k8s.aws/instance-gpu-memory",
    "eks.amazonaws.com/instance-gpu-memory",
    "nvidia.com/gpu.memory",
)
_REPLICAS_LABEL = "nvidia.com/gpu.replicas"
_REPLICAS_SUFFIX = ".replicas"
_SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
_LABELS = (
    *(_COUNT_LABELS + _PRODUCT_LABELS + _MEMORY_LABELS),
    *(_REPLICAS_LABEL, _SHARING_LABEL),
    *neuron.LABELS,
)
_RESOURCES = (WHOLE, SHARED, *neuron.RESOURCES)


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The GPUs of a node: physical count, memory of each, and how they are divided. A replica is one of a GPU
    or, with the single strategy, of a slice.
    """

    count: int
    memory_mib: int
    product: str
    replicas: int
    # The MIG profile where all GPUs are sliced alike (single strategy) and slices appear as nvidia.com/gpu.
    single_profile: str = ""
    # What GPU Feature Discovery says of such a slice: less than its part of the GPU's memory. 0: not known.
    slice_memory_mib: int = 0
    # Of time-sliced MIG resources, by profile.
    slice_replicas: tuple[tuple[str, int], ...] = ()
    # MPS: clients run concurrently, each with its part of the memory, instead of time-sliced.
    is_mps: bool = False
    # NeuronCores of each device; 0: these are GPUs.
    neuron_cores: int = 0


def is_gpu(resource: str) -> bool:
    """Whether who holds it holds a GPU or a Neuron device, or a part of one."""
    return resource in neuron.RESOURCES or is_requestable(resource)


def is_requestable(resource: str) -> bool:
    """Whether deployments request it. NeuronCores are a second name of what is requested by device."""
    if resource in {WHOLE, SHARED, neuron.DEVICE}:
        return True
    return resource.startswith(MIG_PREFIX)


def whole_resource(product: str) -> str:
    """Return how a pod requests the whole accelerators of a product, by the name of the price catalogue or of a
    node.
    """
    return neuron.DEVICE if neuron.is_product(product) else WHOLE


def format_product(product: str) -> str:
    """Format a name of the price catalogue as pages write it: L4, Inferentia2."""
    return neuron.title_of(product) if neuron.is_product(product) else product.upper()


def format_count(units: int, resource: str) -> str:
    """Format an amount of a resource: "1 GPU", "2 Neuron devices" or "7 nvidia.com/mig-1g.10gb", for example."""
    name = {WHOLE: "GPU", neuron.DEVICE: "Neuron device", neuron.CORE: "NeuronCore"}.get(resource)
    return f"{units} {resource}" if name is None else f"{units} {name}{'' if units == 1 else 's'}"


def name_plural(resources: Iterable[str]) -> str:
    """Return what a number of these resources counts, in the plural: "GPUs", "Neuron devices" or "GPUs and Neuron
    devices".
    """
    are_neuron = {name in neuron.RESOURCES for name in resources}
    if are_neuron == {True}:
        return "Neuron devices"
    return "GPUs and Neuron devices" if True in are_neuron else "GPUs"


class HasGpus(Protocol):
    """A node, as it is stored."""

    labels: Any
    allocatable: Any
    claimable: Any


def read_node(node: HasGpus) -> NodeGpus:
    return read_gpus(node.labels, node.allocatable, devices.from_json(node.claimable))


def read_gpus(
    labels: Mapping[str, str],
    allocatable: Mapping[str, str],
    claimable: devices.Devices = devices.NONE,
) -> NodeGpus:
    """Return a node's GPUs from the labels of the device plugins, GPU feature discovery and Karpenter; what only a
    DRA driver knows comes from its devices. A GPU that both offer counts once.
    """
    gpus = _labelled(_labels_read(labels), _among(_RESOURCES, allocatable))
    if not claimable.all or gpus.neuron_cores:
        return gpus
    return replace(
        gpus,
        count=max(gpus.count, claimable.gpu_count),
        memory_mib=gpus.memory_mib or claimable.memory_mib,
        product=gpus.product or claimable.product,
    )


def device_ppm(device: devices.Device, gpus: NodeGpus) -> int:
    """Return the GPU share of a claimed device."""
    return share_ppm(devices.resource_of(device), 1, ignore_division(gpus))


def ignore_division(gpus: NodeGpus) -> NodeGpus:
    """A driver's devices are not divided by the device plugin."""
    return replace(
        gpus, replicas=1, single_profile="", slice_memory_mib=0, slice_replicas=(), is_mps=False
    )


def _labels_read(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that count, and the replicas of MIG resources, which are named by their profile."""
    of_slices = sorted(
        (name, value)
        for name, value in labels.items()
        if name.startswith(MIG_PREFIX) and name.endswith(_REPLICAS_SUFFIX)
    )
    return (*_among(_LABELS, labels), *of_slices)


def _among(names: tuple[str, ...], values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, values[name]) for name in names if name in values)


# A form reads thousands of nodes, of which most are alike.
@functools.lru_cache(maxsize=1024)
def _labelled(
    label_items: tuple[tuple[str, str], ...], allocatable_items: tuple[tuple[str, str], ...]
) -> NodeGpus:
    labels, allocatable = dict(label_items), dict(allocatable_items)
    if of_neuron := neuron.read_devices(labels, allocatable):
        return NodeGpus(
            count=of_neuron.count,
            memory_mib=of_neuron.memory_mib,
            product=of_neuron.title,
            replicas=1,
            neuron_cores=of_neuron.cores_each,
        )
    name, profile = mig.split_product(_first(labels, _PRODUCT_LABELS))
    replicas = max(1, _number(labels.get(_REPLICAS_LABEL)))
    if labels.get(_SHARING_LABEL) == "none":
        replicas = 1
    labelled = _number(labels.get(_MEMORY_LABELS[2]))
    memory = _number(_first(labels, _MEMORY_LABELS[:2]))
    memory = memory or mig.whole_memory_mib(name, profile, labelled)
    return NodeGpus(
        count=_count(labels, allocatable, replicas, profile, memory),
        memory_mib=memory,
        product=name,
        replicas=replicas,
        single_profile=profile,
        slice_memory_mib=labelled if profile and labelled < memory else 0,
        slice_replicas=tuple(_slice_replicas(labels)),
        is_mps=labels.get(_SHARING_LABEL) == "mps",
    )


def _slice_replicas(labels: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for name, value in labels.items():
        if name.startswith(MIG_PREFIX) and name.endswith(_REPLICAS_SUFFIX) and _number(value) > 1:
            yield mig.profile_of(name.removesuffix(_REPLICAS_SUFFIX)), _number(value)


def sharing(resource: str, gpus: NodeGpus) -> str:
    """Return how a unit of the resource shares its GPU: whole, mig, mps or shared (time-sliced, also of a slice)."""
    if resource.startswith(MIG_PREFIX):
        return "shared" if mig.profile_of(resource) in dict(gpus.slice_replicas) else "mig"
    if gpus.single_profile and gpus.replicas <= 1:
        return "mig"
    if resource != SHARED and gpus.replicas <= 1:
        return "whole"
    return "mps" if gpus.is_mps else "shared"


def share_ppm(resource: str, units: int, gpus: NodeGpus) -> int:
    """Return the GPU share of `units` of the resource on a node with these GPUs."""
    if resource.startswith(MIG_PREFIX):
        profile = mig.profile_of(resource)
        return units * _slice_ppm(profile, gpus) // dict(gpus.slice_replicas).get(profile, 1)
    if resource == neuron.CORE:
        return units * GPU_PPM // max(gpus.neuron_cores, 1)
    if gpus.single_profile:
        return units * _slice_ppm(gpus.single_profile, gpus) // gpus.replicas
    if resource == SHARED or gpus.replicas > 1:
        return units * GPU_PPM // gpus.replicas
    return units * GPU_PPM


def vram_mib(resource: str, units: int, gpus: NodeGpus) -> int:
    """Return the memory of the share; time-sliced replicas share it without isolation."""
    if gpus.slice_memory_mib and resource in {WHOLE, SHARED}:
        return units * gpus.slice_memory_mib // gpus.replicas
    return gpus.memory_mib * share_ppm(resource, units, gpus) // GPU_PPM


def _slice_ppm(profile: str, gpus: NodeGpus) -> int:
    return GPU_PPM * mig.memory_slices(profile, gpus.memory_mib) // mig.MEMORY_SLICES


def _count(
    labels: Mapping[str, str],
    allocatable: Mapping[str, str],
    replicas: int,
    profile: str,
    memory_mib: int,
) -> int:
    physical = _number(_first(labels, _COUNT_LABELS[:2]))
    if physical:
        return physical
    counted = _number(labels.get(_COUNT_LABELS[2]))
    if not counted:
        advertised = _number(allocatable.get(WHOLE)) or _number(allocatable.get(SHARED))
        counted = -(-advertised // replicas)
    # With the single strategy slices are counted.
    return -(-counted // mig.slices_per_gpu(profile, memory_mib)) if profile else counted


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
