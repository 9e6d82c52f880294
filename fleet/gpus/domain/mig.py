"""MIG profiles, such as 1g.10gb: how much of which GPU a slice is.

A GPU has eight memory slices and seven compute slices; A30 and RTX PRO have four of each, which are two here.
"""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "nvidia.com/mig-"
MEMORY_SLICES: Final = 8
_COMPUTE_SLICES: Final = 7
_MIB: Final = 1024
# "1c.3g.20gb" is a part of the compute of 3g.20gb; "+me", ".me", "+gfx" and "-me" name its engines.
_PROFILE: Final = re.compile(r"^(?:\d+c\.)?(\d+)g\.(\d+)gb")
# A GPU has one set of media engines, so one such slice.
_WITH_MEDIA_ENGINES: Final = re.compile(r"gb[+.]me\b")
_SHARED_SUFFIXES: Final = ("-SHARED", ".shared")
# Where the size of the memory is not known. 1g profiles of twice the memory need it.
_BY_COMPUTE: Final = {1: 1, 2: 2, 3: 4, 4: 4}
# The first that is in the product's name decides. Grace's number is that of the CPU's memory.
_GIGABYTES: Final = (
    ("GH200-480GB", 96),
    ("GH200-144G", 144),
    ("RTX-PRO-6000", 96),
    ("RTX-PRO-5000-72GB", 72),
    ("RTX-PRO-5000", 48),
    ("GB300", 278),
    ("GB200", 186),
    ("B300", 269),
    ("B200", 180),
    ("H200", 141),
    ("H100-NVL", 94),
    ("H20-3E", 141),
    ("A30", 24),
)
_SIZE_IN_NAME: Final = re.compile(r"(?<![A-Z0-9])(\d{2,3})GB")
_DEFAULT_GIGABYTES: Final = (("H100", 80), ("H800", 80), ("A800", 80), ("H20", 96))


def split_product(product: str) -> tuple[str, str]:
    """Return a label's product and the profile of its slices, which is empty unless all GPUs are cut alike.

    GPU Feature Discovery names GPUs that are not cut alike "-MIG-INVALID" and offers none of them.
    """
    name, _, profile = product.removesuffix("-SHARED").partition("-MIG-")
    return name, profile if _PROFILE.match(profile) else ""


def profile_of(resource: str) -> str:
    """Return 1g.10gb of nvidia.com/mig-1g.10gb and of nvidia.com/mig-1g.10gb.shared."""
    profile = resource.removeprefix(PREFIX)
    for suffix in _SHARED_SUFFIXES:
        profile = profile.removesuffix(suffix)
    return profile


def whole_memory_mib(product: str, profile: str, labelled_mib: int) -> int:
    """Return the memory of a whole GPU whose slices are labelled with this product and memory.

    With the single strategy the label is that of a slice, and no label states the GPU's: its product does, else the
    profile. 0 means not known.
    """
    match = _PROFILE.match(profile)
    if match is None:
        return labelled_mib
    slice_mib = int(match[2]) * _MIB
    if labelled_mib > slice_mib + slice_mib // 2:
        return labelled_mib
    if gigabytes := _gigabytes_of(product):
        return gigabytes * _MIB
    return (labelled_mib or slice_mib) * MEMORY_SLICES // memory_slices(profile, 0)


def memory_slices(profile: str, memory_mib: int) -> int:
    """1g.10gb of an 80 GB GPU is 1 of 8. Derived from the compute slices if the memory is not known."""
    match = _PROFILE.match(profile)
    if match is None:
        return MEMORY_SLICES
    compute, gigabytes = int(match[1]), int(match[2])
    if memory_mib:
        slices = round(gigabytes * _MIB * MEMORY_SLICES / memory_mib)
    else:
        slices = _BY_COMPUTE.get(compute, MEMORY_SLICES)
    return min(max(slices, 1), MEMORY_SLICES)


def slices_per_gpu(profile: str, memory_mib: int) -> int:
    """Return how many slices of one profile a GPU has room for, by its compute and its memory."""
    if _WITH_MEDIA_ENGINES.search(profile):
        return 1
    match = _PROFILE.match(profile)
    compute = int(match[1]) if match else _COMPUTE_SLICES
    by_memory = MEMORY_SLICES // memory_slices(profile, memory_mib)
    return max(1, min(_COMPUTE_SLICES // max(compute, 1), by_memory))


def _gigabytes_of(product: str) -> int:
    name = product.upper()
    for part, gigabytes in _GIGABYTES:
        if part in name:
            return gigabytes
    if match := _SIZE_IN_NAME.search(name):
        return int(match[1])
    return next((size for part, size in _DEFAULT_GIGABYTES if part in name), 0)
