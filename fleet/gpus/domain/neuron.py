"""AWS Neuron: the accelerators of inf2, trn1 and the like, as the Neuron device plugin offers them.

A device is what is shared out, as a GPU is. The plugin offers the same devices a second time by their NeuronCores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DEVICE: Final = "aws.amazon.com/neuron"
# What older releases of the plugin call a device.
DEVICE_ALIAS: Final = "aws.amazon.com/neurondevice"
CORE: Final = "aws.amazon.com/neuroncore"
RESOURCES: Final = (DEVICE, DEVICE_ALIAS, CORE)
_NAME_LABELS: Final = (
    "karpenter.k8s.aws/instance-accelerator-name",
    "eks.amazonaws.com/instance-accelerator-name",
)
_COUNT_LABELS: Final = (
    "karpenter.k8s.aws/instance-accelerator-count",
    "eks.amazonaws.com/instance-accelerator-count",
)
_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
# All that are read here.
LABELS: Final = (*_NAME_LABELS, *_COUNT_LABELS, _TYPE_LABEL)


@dataclass(frozen=True, slots=True)
class Product:
    """A Neuron product: the memory of a device in MiB, and its NeuronCores."""

    title: str
    memory_mib: int
    cores: int


# By the name that EC2, Karpenter and the price catalogue use (awsdocs-neuron, Neuron hardware).
PRODUCTS: Final[Mapping[str, Product]] = {
    "inferentia": Product("Inferentia", 8 * 1024, 4),
    "inferentia2": Product("Inferentia2", 32 * 1024, 2),
    "trainium": Product("Trainium", 32 * 1024, 2),
    "trainium2": Product("Trainium2", 96 * 1024, 8),
}
_FAMILIES: Final[Mapping[str, str]] = {
    "inf1": "inferentia",
    "inf2": "inferentia2",
    "trn1": "trainium",
    "trn1n": "trainium",
    "trn2": "trainium2",
}


@dataclass(frozen=True, slots=True)
class NeuronDevices:
    """The Neuron devices of a node. Memory is of each, 0 where the product is not known."""

    count: int
    memory_mib: int
    title: str
    cores_each: int


def is_product(name: str) -> bool:
    """Whether a name of the price catalogue or of a node is a Neuron product's."""
    return name.lower() in PRODUCTS


def title_of(name: str) -> str:
    """Return the title of a product, such as "Inferentia2" for inferentia2."""
    return PRODUCTS[name.lower()].title


def product_of_type(instance_type: str) -> Product | None:
    """Return the Neuron product of an instance type. None if its nodes have no known Neuron devices."""
    return PRODUCTS.get(_FAMILIES.get(instance_type.partition(".")[0], ""))


def read_devices(labels: Mapping[str, str], allocatable: Mapping[str, str]) -> NeuronDevices | None:
    """Return the node's Neuron devices from its labels and allocatable resources. None if it has none."""
    name = next((labels[key] for key in _NAME_LABELS if labels.get(key)), "").lower()
    offered = {key: _number(allocatable.get(key)) for key in RESOURCES}
    if name not in PRODUCTS and not any(offered.values()):
        return None
    product = PRODUCTS.get(name) or product_of_type(labels.get(_TYPE_LABEL, ""))
    devices = offered[DEVICE] or offered[DEVICE_ALIAS]
    cores_each = offered[CORE] // devices if devices and offered[CORE] else 0
    cores_each = cores_each or (product.cores if product else 1)
    labelled = next((_number(labels[key]) for key in _COUNT_LABELS if labels.get(key)), 0)
    return NeuronDevices(
        count=labelled or devices or -(-offered[CORE] // cores_each),
        memory_mib=product.memory_mib if product else 0,
        title=product.title if product else "Neuron",
        cores_each=cores_each,
    )


def free_units(
    offered: Mapping[str, int], taken: Mapping[str, int], cores_each: int
) -> dict[str, int]:
    """Return the free units by resource. The plugin counts devices and cores separately, so that units taken by one
    name still count as free by the other; a device with a core in use is not free.
    """
    cores = max(cores_each, 1)
    taken_cores = taken.get(CORE, 0)
    taken_devices = taken.get(DEVICE, 0) + taken.get(DEVICE_ALIAS, 0)
    left = {
        DEVICE: taken_devices + -(-taken_cores // cores),
        DEVICE_ALIAS: taken_devices + -(-taken_cores // cores),
        CORE: taken_cores + taken_devices * cores,
    }
    return {name: max(0, units - left[name]) for name, units in offered.items()}


def sizes(instance_type: str, most: int) -> list[int]:
    """Return how many devices a pod may request. Those of trn1.32xlarge form a torus, whose parts are 1, 4, 8 and
    16.
    """
    counts = (1, 4, 8, 16) if is_torus(instance_type) else (1, 2, 4, 8, 16)
    return [count for count in counts if count <= most]


def is_torus(instance_type: str) -> bool:
    return instance_type in ("trn1.32xlarge", "trn1n.32xlarge")


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
