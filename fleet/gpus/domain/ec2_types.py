"""Reads the name of an EC2 instance type: family, size, processor and GPUs, as labels of nodes state them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TYPE: Final = re.compile(
    r"(?P<category>[a-z]+)(?P<generation>\d+)(?P<rest>[-a-z0-9]*)\.(?P<size>.+)"
)
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
# Karpenter's labels, and those of EKS Auto Mode.
LABEL_PREFIXES: Final = ("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-")
_ARCHITECTURE: Final = "kubernetes.io/arch"
_OPERATING_SYSTEM: Final = "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class _Gpus:
    """The GPU of a family as Karpenter calls it, MiB of each, and how many a size has: one unless listed."""

    name: str
    memory_mib: int
    counts: Mapping[str, int]


_ONE: Final[Mapping[str, int]] = {}
_FOUR: Final = {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_TWO: Final = {"12xlarge": 2, "24xlarge": 4, "48xlarge": 8}
_EIGHT: Final = {"48xlarge": 8}
_BY_FAMILY: Final[Mapping[str, _Gpus]] = {
    "g4dn": _Gpus("t4", 16384, {"12xlarge": 4, "metal": 8}),
    "g5": _Gpus("a10g", 22888, _FOUR),
    "g5g": _Gpus("t4g", 16384, {"16xlarge": 2, "metal": 2}),
    "g6": _Gpus("l4", 22888, _FOUR),
    "gr6": _Gpus("l4", 22888, _ONE),
    "g6e": _Gpus("l40s", 45776, _FOUR),
    "g7": _Gpus("rtx-pro-4500", 32768, _TWO),
    "g7e": _Gpus("rtx-pro-server-6000", 98304, _TWO),
    "p3": _Gpus("v100", 16384, {"8xlarge": 4, "16xlarge": 8}),
    "p3dn": _Gpus("v100", 32768, {"24xlarge": 8}),
    "p4d": _Gpus("a100", 40960, {"24xlarge": 8}),
    "p4de": _Gpus("a100", 81920, {"24xlarge": 8}),
    "p5": _Gpus("h100", 81920, _EIGHT),
    "p5e": _Gpus("h200", 144384, _EIGHT),
    "p5en": _Gpus("h200", 144384, _EIGHT),
    "p6-b200": _Gpus("b200", 183359, _EIGHT),
    "p6-b300": _Gpus("b300", 275040, _EIGHT),
}


def derive_labels(instance_type: str) -> dict[str, str]:
    """Return the labels that a node of the type gets, as far as they follow from its name."""
    labels = {INSTANCE_TYPE: instance_type}
    match = _TYPE.fullmatch(instance_type)
    if match is None:
        return labels
    family = instance_type.partition(".")[0]
    # Graviton has a g among its attributes (g5g, c7gn), Grace a gb (p6e-gb200).
    labels[_ARCHITECTURE] = "arm64" if "g" in match["rest"] else "amd64"
    labels[_OPERATING_SYSTEM] = "linux"
    facts = {
        "family": family,
        "size": match["size"],
        "category": match["category"],
        "generation": match["generation"],
    }
    if gpus := _BY_FAMILY.get(family):
        facts |= {
            "gpu-name": gpus.name,
            "gpu-manufacturer": "nvidia",
            "gpu-count": str(gpus.counts.get(match["size"], 1)),
            "gpu-memory": str(gpus.memory_mib),
        }
    return labels | {f"{prefix}{name}": v for prefix in LABEL_PREFIXES for name, v in facts.items()}
