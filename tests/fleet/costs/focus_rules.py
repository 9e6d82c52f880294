"""What FOCUS 1.3 demands of a Cost and Usage row, as far as a row can show it.

Written from the specification's columns and attributes, independently of the export: a rule names its
columns and returns what is wrong. Empty fields of the CSV are null.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

Row = Mapping[str, str]

# Mandatory in 1.3; ProviderName and PublisherName are deprecated there and still mandatory.
NEVER_NULL: Final = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "HostProviderName",
    "InvoiceIssuerName",
    "ListCost",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
    "ServiceProviderName",
    "ServiceSubcategory",
)
PRESENT: Final = (
    *NEVER_NULL,
    "AllocatedMethodDetails",
    "AllocatedMethodId",
    "AllocatedResourceId",
    "AllocatedResourceName",
    "AllocatedTags",
    "ChargeClass",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedUnitPrice",
    "CommitmentDiscountStatus",
    "InvoiceId",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)
ALLOWED: Final = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {"Compute"},
    "ServiceSubcategory": {"Virtual Machines", "Other (Compute)"},
    "BillingCurrency": {"USD"},
}
COSTS: Final = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
UNIT_PRICES: Final = ("ContractedUnitPrice", "ListUnitPrice")
NUMBERS: Final = (*COSTS, *UNIT_PRICES, "ConsumedQuantity", "PricingQuantity")
TIMES: Final = ("BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart")
# Of usage that corrects no closed period.
OF_USAGE: Final = (
    "ConsumedQuantity",
    "ContractedUnitPrice",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "SkuId",
    "SkuPriceId",
)
# The second is null exactly where the first is.
TOGETHER: Final = (
    ("AllocatedResourceId", "AllocatedResourceName"),
    ("ConsumedQuantity", "ConsumedUnit"),
    ("PricingQuantity", "PricingUnit"),
    ("RegionId", "RegionName"),
    ("ResourceId", "ResourceType"),
    ("SkuId", "SkuMeter"),
    ("SubAccountId", "SubAccountName"),
)
# The first has one value of the second.
ONE_EACH: Final = (
    ("ServiceName", "ServiceCategory"),
    ("ServiceName", "ServiceSubcategory"),
    ("SkuPriceId", "SkuId"),
    ("SkuPriceId", "SkuPriceDetails"),
)
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UNIT: Final = re.compile(r"(Hours|[A-Z][A-Za-z]*-Hours)")
_MICRO: Final = Decimal("0.000001")


def violations(rows: Sequence[Row]) -> list[str]:
    """Empty for a data set that conforms."""
    found = [
        f"{name}: {text}" for row in rows for name, check in _ROW.items() for text in check(row)
    ]
    return [*found, *_across(rows)]


def _presence(row: Row) -> Iterator[str]:
    yield from (name for name in PRESENT if name not in row)
    yield from (name for name in NEVER_NULL if not row.get(name))


def _values(row: Row) -> Iterator[str]:
    for name, allowed in ALLOWED.items():
        if row[name] not in allowed:
            yield f"{name} is {row[name]}"


def _numbers(row: Row) -> Iterator[str]:
    for name in NUMBERS:
        if row[name] and not _NUMBER.fullmatch(row[name]):
            yield f"{name} is {row[name]}"
    for name in UNIT_PRICES:
        if row[name].startswith("-"):
            yield f"{name} is negative"
    for name in ("ConsumedUnit", "PricingUnit"):
        if row[name] and not _UNIT.fullmatch(row[name]):
            yield f"{name} is {row[name]}"


def _periods(row: Row) -> Iterator[str]:
    yield from (f"{name} is {row[name]}" for name in TIMES if not _TIME.fullmatch(row[name]))
    month, next_month, start, end = (
        _at(row[name])
        for name in (
            "BillingPeriodStart",
            "BillingPeriodEnd",
            "ChargePeriodStart",
            "ChargePeriodEnd",
        )
    )
    if not month <= start < end <= next_month:
        yield f"the charge from {start} to {end} is not in the month from {month} to {next_month}"
    if (month.day, next_month.day) != (1, 1) or not 28 <= (next_month - month).days <= 31:
        yield f"{month} to {next_month} is no month"


def _nulls(row: Row) -> Iterator[str]:
    if row["ChargeCategory"] == "Usage" and not row["ChargeClass"]:
        yield from (f"{name} of usage is null" for name in OF_USAGE if not row[name])
    if row["ChargeCategory"] != "Usage" and row["ConsumedQuantity"]:
        yield "ConsumedQuantity is of no usage"
    for first, second in TOGETHER:
        if bool(row[first]) != bool(row[second]):
            yield f"{second} is {row[second]!r} where {first} is {row[first]!r}"
    if row["SkuPriceDetails"] and not row["SkuPriceId"]:
        yield "SkuPriceDetails without a SkuPriceId"
    if row["AllocatedResourceId"] and not row["AllocatedMethodId"]:
        yield "an allocation without a method"
    if row["AllocatedTags"] and not row["AllocatedResourceId"]:
        yield "tags of no allocated resource"


def _products(row: Row) -> Iterator[str]:
    """A unit price times the quantity is the cost, to the smallest amount of the ledger."""
    if row["ChargeClass"] == "Correction" or not row["PricingQuantity"]:
        return
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        if not row[price]:
            continue
        product = Decimal(row[price]) * Decimal(row["PricingQuantity"])
        if product.quantize(_MICRO) != Decimal(row[cost]):
            yield f"{price} x PricingQuantity is {product}, {cost} is {row[cost]}"


def _objects(row: Row) -> Iterator[str]:
    for name in ("Tags", "AllocatedTags", "SkuPriceDetails"):
        pairs = json.loads(row[name]) if row[name] else {}
        if not all(isinstance(v, str | int | float | bool | None) for v in pairs.values()):
            yield f"{name} has nested values"
    if row["AllocatedTags"] and json.loads(row["AllocatedTags"]).keys() & json.loads(row["Tags"]):
        yield "AllocatedTags repeat Tags"
    details = json.loads(row["AllocatedMethodDetails"]) if row["AllocatedMethodDetails"] else None
    if details is not None:
        for element in details["Elements"]:
            if not 0 <= element["AllocatedRatio"] <= 1 or "UsageUnit" not in element:
                yield f"AllocatedMethodDetails has {element}"


def _columns(row: Row) -> Iterator[str]:
    names = list(row)
    own = [name for name in names if name.startswith("x_")]
    if names != [*(name for name in names if name not in own), *own]:
        yield "columns of one's own before those of FOCUS"
    for name in names:
        if not re.fullmatch(r"(x_)?([A-Z][a-z]*)+", name) or len(name) > 50:
            yield f"column {name}"


_ROW: Final[Mapping[str, Callable[[Row], Iterator[str]]]] = {
    "presence": _presence,
    "allowed values": _values,
    "numbers": _numbers,
    "periods": _periods,
    "nulls": _nulls,
    "products": _products,
    "objects": _objects,
    "columns": _columns,
}


def _across(rows: Sequence[Row]) -> Iterator[str]:
    for first, second in ONE_EACH:
        values: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            if row[first]:
                values[row[first]].add(row[second])
        for name, known in values.items():
            if len(known) > 1:
                yield f"{first} {name} has several of {second}: {sorted(known)}"
    if len({row["BillingCurrency"] for row in rows}) > 1:
        yield "several currencies"


def _at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
