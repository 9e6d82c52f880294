"""Kubernetes quantities as exact numbers, and as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

_SUFFIXES: Final[Mapping[str, Decimal]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("0.001"),
    "": Decimal(1),
    "k": Decimal(1000),
    "M": Decimal(1000) ** 2,
    "G": Decimal(1000) ** 3,
    "T": Decimal(1000) ** 4,
    "P": Decimal(1000) ** 5,
    "E": Decimal(1000) ** 6,
    "Ki": Decimal(1024),
    "Mi": Decimal(1024) ** 2,
    "Gi": Decimal(1024) ** 3,
    "Ti": Decimal(1024) ** 4,
    "Pi": Decimal(1024) ** 5,
    "Ei": Decimal(1024) ** 6,
}
# k8s.io/apimachinery/pkg/api/resource: a signed number with an exponent or a suffix.
_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([numkMGTPE]?|[KMGTPE]i)"
)
_GIB: Final = 1024**3


def parse_quantity(text: object) -> Decimal:
    """Parse a quantity: `3920m`, `187904819Ki`, `1` or `1e3`, for example. Raises ValueError for anything else."""
    match = _QUANTITY.fullmatch(str(text).strip())
    try:
        if match:
            return Decimal(match[1]) * _SUFFIXES[match[2]]
    except ArithmeticError as error:
        raise ValueError(f"{text!r} is not a quantity") from error
    raise ValueError(f"{text!r} is not a quantity")


def millicores(text: object) -> int | None:
    """Return the millicores of an amount of CPU. None for an invalid quantity."""
    try:
        return int(parse_quantity(text) * 1000)
    except (ValueError, OverflowError):
        return None


def whole_bytes(text: object) -> int | None:
    """Return the bytes of an amount of memory. None for an invalid quantity."""
    try:
        return int(parse_quantity(text))
    except (ValueError, OverflowError):
        return None


def format_cores(cpu_millicores: int) -> str:
    """Format millicores as cores: "3.92" or "48", for example."""
    whole, rest = divmod(cpu_millicores, 1000)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def format_gib(memory_bytes: int) -> str:
    """Format memory: "400 Gi" or "13.8 Gi", for example, rounded down so that what is free is never overstated."""
    tenths = memory_bytes * 10 // _GIB
    return f"{tenths // 10} Gi" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} Gi"
