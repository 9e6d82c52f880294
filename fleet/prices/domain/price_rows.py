"""Rows of a price list, as a CSV file or a form states them, and the hardware of an instance type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from fleet.gpus.domain import capacity_types

HIGHEST_USD_PER_HOUR: Final = Decimal(100_000)
# A date further ahead, or before there were such GPUs, is a typing error.
_LONGEST_AHEAD: Final = timedelta(days=5 * 366)
_FIRST_DAY: Final = date(2000, 1, 1)
# Small enough that no number of them takes long.
_AMOUNT: Final = re.compile(
    r"[-+]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})(e[-+]?[0-9]{1,2})?", re.IGNORECASE
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_NAMES: Final[Mapping[str, int]] = {"instance_type": 40, "region": 30}
_LARGEST_INTEGER: Final = 2**31 - 1
HARDWARE: Final = (
    "gpu_name",
    "gpu_count",
    "gpu_memory_mib",
    "is_mig_capable",
    "vcpu",
    "memory_gib",
    "allocatable_cpu",
    "allocatable_memory",
)
COLUMNS: Final = (
    "instance_type",
    "region",
    "capacity_type",
    "usd_per_hour",
    "valid_from",
    "source",
    *HARDWARE,
)


class RowProblem(Exception):
    """A row of a price list is invalid: `column` cannot be read; the message says what to write."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware of an instance type. Memory of one GPU is in MiB, of the machine in GiB. A type with a part of a
    GPU (g6f) has a count of 0.
    """

    gpu_name: str
    gpu_count: int
    gpu_memory_mib: int
    is_mig_capable: bool
    vcpu: int
    memory_gib: int
    allocatable_cpu: str
    allocatable_memory: str


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A row of a price list. `hardware` None means that it is taken from what is known of the type."""

    instance_type: str
    region: str
    capacity_type: str
    usd_per_hour_amount: Decimal
    valid_from: date
    source: str
    hardware: Hardware | None = None


def parse(row: Mapping[str, str | None], *, today: date) -> PriceRow:
    """Raises RowProblem."""
    texts = {column: (row.get(column) or "").strip() for column in COLUMNS}
    capacity_type = texts["capacity_type"] or capacity_types.ON_DEMAND
    if capacity_type not in capacity_types.LABELS:
        known = ", ".join(capacity_types.LABELS)
        raise RowProblem("capacity_type", f"Use one of {known}, not {capacity_type[:40]}.")
    return PriceRow(
        instance_type=_name(texts, "instance_type"),
        region=_name(texts, "region"),
        capacity_type=capacity_type,
        usd_per_hour_amount=amount(texts["usd_per_hour"], "usd_per_hour"),
        valid_from=_day(texts["valid_from"], today),
        source=texts["source"][:200] or "entered by hand",
        hardware=_hardware(texts) if any(texts[column] for column in HARDWARE) else None,
    )


def amount(text: str, column: str) -> Decimal:
    """Parse a price in dollars, to the micro-dollar. Raises RowProblem."""
    if not _AMOUNT.fullmatch(text):
        raise RowProblem(column, f"Use digits and a dot, for example 1.006, not “{text[:40]}”.")
    value = Decimal(text)
    if not 0 < value <= HIGHEST_USD_PER_HOUR:
        raise RowProblem(
            column,
            f"The price must be more than 0 and at most {HIGHEST_USD_PER_HOUR:,}, not “{text[:40]}”.",
        )
    rounded = value.quantize(Decimal("0.000001"))
    if not rounded:
        raise RowProblem(column, "The price is less than a millionth of a dollar.")
    return rounded


def _name(texts: Mapping[str, str], column: str) -> str:
    text, longest = texts[column], _LONGEST_NAMES[column]
    if not _NAME.fullmatch(text) or len(text) > longest:
        raise RowProblem(
            column, f"Use letters, digits, '.', '_' and '-', at most {longest}, not “{text[:40]}”."
        )
    return text


def _day(text: str, today: date) -> date:
    if not text:
        return today
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise RowProblem("valid_from", f"Use a date like 2026-11-01, not “{text[:40]}”.") from None
    if day > today + _LONGEST_AHEAD:
        raise RowProblem("valid_from", f"{day} is more than five years ahead.")
    if day < _FIRST_DAY:
        raise RowProblem("valid_from", f"{day} is before {_FIRST_DAY.year}. Check the year.")
    return day


def _hardware(texts: Mapping[str, str]) -> Hardware:
    if texts["is_mig_capable"] not in ("", "yes", "no"):
        raise RowProblem("is_mig_capable", "Use yes or no.")
    if not texts["gpu_name"]:
        raise RowProblem("gpu_name", "Enter the name of the GPU, such as a100.")
    return Hardware(
        gpu_name=texts["gpu_name"][:30],
        gpu_count=_integer(texts, "gpu_count", least=0),
        gpu_memory_mib=_integer(texts, "gpu_memory_mib", least=0),
        is_mig_capable=texts["is_mig_capable"] == "yes",
        vcpu=_integer(texts, "vcpu", least=0),
        memory_gib=_integer(texts, "memory_gib", least=0),
        allocatable_cpu=texts["allocatable_cpu"][:20],
        allocatable_memory=texts["allocatable_memory"][:20],
    )


def _integer(texts: Mapping[str, str], column: str, *, least: int) -> int:
    text = texts[column]
    if text.isascii() and text.isdigit() and len(text) < 12:
        value = int(text)
        if least <= value <= _LARGEST_INTEGER:
            return value
    raise RowProblem(column, f"Enter a whole number of at least {least}, not “{text[:40]}”.")
