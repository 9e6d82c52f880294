"""Ledger rows in FOCUS 1.2 columns. Slipway's own columns start with `x_`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

from fleet.costs.domain.results import LedgerEntry
from fleet.gpus.domain.intervals import HOUR, HOUR_MS

COLUMNS = (
    "BillingAccountId",
    "BillingCurrency",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "BilledCost",
    "EffectiveCost",
    "ListCost",
    "ContractedCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ProviderName",
    "PublisherName",
    "InvoiceIssuerName",
    "ServiceCategory",
    "ServiceName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "SubAccountId",
    "SkuId",
    "Tags",
    "x_Cluster",
    "x_Namespace",
    "x_Workload",
    "x_GpuMilliseconds",
    "x_Kind",
    "x_PriceSource",
    "x_IsPriced",
    "x_IsSealed",
    "x_IsDemo",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_GPU_HOURS = Decimal("0.000001")
# FOCUS calls market prices dynamic.
_DYNAMIC = frozenset({"spot"})


def row(entry: LedgerEntry) -> list[str]:
    """Values in the order of COLUMNS. Costs come from list prices, so all four are equal.

    FOCUS allows no empty cost: a row without a price has cost 0, no unit price and x_IsPriced false.
    """
    hours = str((Decimal(entry.gpu_milliseconds) / HOUR_MS).quantize(_GPU_HOURS))
    month, next_month = _month(entry.hour)
    is_adjustment = entry.kind == "adjustment"
    holder = f"{entry.namespace}/{entry.workload_name}" if entry.namespace else "idle GPUs"
    return [
        "slipway",
        "USD",
        _time(month),
        _time(next_month),
        _time(entry.hour),
        _time(entry.hour + HOUR),
        "Adjustment" if is_adjustment else "Usage",
        "Correction" if is_adjustment else "",
        quote_formula(f"{holder} on {entry.node_name} ({entry.instance_type})"),
        *[str(entry.cost_amount)] * 4,
        *_unit_price(entry),
        *[hours, "GPU-hours"] * 2,
        *["AWS"] * 3,
        "Compute",
        "Amazon EC2",
        quote_formula(entry.node_name),
        quote_formula(entry.node_name),
        "GPU node",
        entry.team_slug,
        quote_formula(entry.instance_type),
        quote_formula(json.dumps(entry.labels, sort_keys=True)),
        quote_formula(entry.cluster_name),
        quote_formula(entry.namespace),
        quote_formula(entry.workload_name),
        str(entry.gpu_milliseconds),
        entry.kind,
        quote_formula(entry.price_source),
        str(entry.is_priced).lower(),
        str(entry.is_sealed).lower(),
        str(entry.is_demo).lower(),
    ]


def _unit_price(entry: LedgerEntry) -> tuple[str, str]:
    price = entry.usd_per_hour_amount
    category = "Dynamic" if entry.capacity_type in _DYNAMIC else "Standard"
    return "" if price is None else str(price), category


def quote_formula(text: str) -> str:
    """Quote text that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _month(at: datetime) -> tuple[datetime, datetime]:
    first = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return first, first.replace(year=year, month=month)
