"""Load list prices. Each row keeps its source and its first day of validity."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from django.db import transaction

from fleet.models import InstancePrice
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core.errors import Invalid

LOADED = register("prices.loaded", "loaded prices")
CATALOGUE = Path(__file__).resolve().parent.parent / "data" / "gpu_instances.csv"
_KEY = ("instance_type", "region", "capacity_type", "valid_from")
_FIELDS = (
    "usd_per_hour_amount",
    "gpu_name",
    "gpu_count",
    "gpu_memory_mib",
    "is_mig_capable",
    "vcpu",
    "memory_gib",
    "allocatable_cpu",
    "allocatable_memory",
    "source",
)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """`unpriced` are the types without a price in the catalogue."""

    prices: int
    new: int
    unpriced: tuple[str, ...]


def load_catalogue(*, actor: Actor, path: Path = CATALOGUE) -> LoadResult:
    """Add the file's prices. Loading the same file again changes nothing.

    Raises Invalid naming the line that cannot be read; then nothing is loaded.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise Invalid(f"{path} could not be read: {error.strerror}.") from error
    return load_rows(actor=actor, rows=rows)


def load_rows(*, actor: Actor, rows: Iterable[Mapping[str, str]]) -> LoadResult:
    """Columns as in fleet/gpus/data/gpu_instances.csv. Rows with an empty price are skipped."""
    policy.require_platform_admin(actor)
    priced: list[InstancePrice] = []
    unpriced: list[str] = []
    for line, row in enumerate(rows, start=2):
        if row.get("usd_per_hour", "").strip():
            priced.append(_parse(line, row))
        else:
            unpriced.append(row.get("instance_type", ""))
    with transaction.atomic():
        before = InstancePrice.objects.count()
        InstancePrice.objects.bulk_create(
            priced, update_conflicts=True, unique_fields=_KEY, update_fields=_FIELDS
        )
        new = InstancePrice.objects.count() - before
        if new:
            trail.record(
                actor=actor,
                action=LOADED,
                obj=InstancePrice.objects.latest("pk"),
                label=f"{new} prices",
                after={"sources": sorted({price.source for price in priced})},
            )
    return LoadResult(len(priced), new, tuple(unpriced))


def _parse(line: int, row: Mapping[str, str]) -> InstancePrice:
    try:
        amount = Decimal(row["usd_per_hour"])
        if not amount.is_finite() or amount <= 0:
            raise Invalid(
                f"Line {line}: the price must be greater than 0, not {row['usd_per_hour']}."
            )
        return InstancePrice(
            instance_type=row["instance_type"],
            region=row["region"],
            capacity_type=row["capacity_type"],
            usd_per_hour_amount=amount,
            gpu_name=row["gpu_name"],
            gpu_count=int(row["gpu_count"]),
            gpu_memory_mib=int(row["gpu_memory_mib"]),
            is_mig_capable=row["is_mig_capable"] == "yes",
            vcpu=int(row["vcpu"]),
            memory_gib=int(row["memory_gib"]),
            allocatable_cpu=row["allocatable_cpu"],
            allocatable_memory=row["allocatable_memory"],
            source=row["source"],
            valid_from=date.fromisoformat(row["valid_from"]),
        )
    except (KeyError, ValueError, InvalidOperation) as error:
        raise Invalid(
            f"Line {line} of the price list is not valid: check its columns and numbers."
        ) from error
