"""The compute capability of GPUs, for models that were compiled for one of them.

Source: developer.nvidia.com/cuda-gpus. A TensorRT plan runs on the capability that it was built for. Built with
`HardwareCompatibilityLevel::kAMPERE_PLUS` it also runs on 8.0 and later, which its header does not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_OF_GPU: Final[Mapping[str, str]] = {
    "k80": "3.7",
    "m60": "5.2",
    "p100": "6.0",
    "p4": "6.1",
    "v100": "7.0",
    "t4": "7.5",
    "a100": "8.0",
    "a30": "8.0",
    "a10": "8.6",
    "a10g": "8.6",
    "a40": "8.6",
    "l4": "8.9",
    "l40": "8.9",
    "l40s": "8.9",
    "h100": "9.0",
    "h200": "9.0",
    "gh200": "9.0",
    "b200": "10.0",
    "gb200": "10.0",
    "b300": "10.3",
    "gb300": "10.3",
}
_AMPERE: Final = (8, 0)


def get_compute_capability(name: str) -> str:
    """Return the compute capability of a GPU by the name that a node or a price list has for it, such as
    NVIDIA-A10G or Tesla-T4. Empty if unknown.
    """
    words = [word for word in re.split(r"[-_ ]", name.lower()) if word not in ("nvidia", "tesla")]
    return _OF_GPU.get(words[0], "") if words else ""


def may_be_compatible(built_for: str, runs_on: str) -> bool:
    """Whether a plan for the one may run on the other, if it was built hardware compatible."""
    return min(_numbers(built_for), _numbers(runs_on)) >= _AMPERE


def _numbers(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split("."))
