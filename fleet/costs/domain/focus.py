"""Ledger rows in the columns of FOCUS 1.3. Slipway's own columns start with `x_`.

A node's hour is one charge that is split by the holders of its GPUs: what is true of the charge is in
the columns of the resource, what is true of a holder in the Allocated columns. docs/focus.md has the
reasons for each value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from fleet.costs.domain.focus_columns import COLUMNS, PRICE_COLUMNS
from fleet.costs.domain.results import LedgerEntry
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain.intervals import HOUR, HOUR_MS
from fleet.prices.domain.csv_cells import quote_formula

METHOD: Final = "gpu-share-time"
_NULL: Final = ""
_COSTS: Final = (
    "BilledCost",
    "ContractedCost",
    "EffectiveCost",
    "ListCost",
    "PricingCurrencyEffectiveCost",
)
_PROVIDERS: Final = (
    "HostProviderName",
    "InvoiceIssuerName",
    "ProviderName",
    "PublisherName",
    "ServiceProviderName",
)
_UNIT_PRICES: Final = (
    "ContractedUnitPrice",
    "ListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyListUnitPrice",
)
_GPU_HOURS: Final = Decimal("0.000001")
# Fine enough that price x quantity is the cost to the micro-dollar, at any price of a node.
_NODE_HOURS: Final = Decimal("1e-15")
_RATIO: Final = Decimal("1e-12")
# us-east-1, us-gov-west-1: a hyphen before the number. europe-west4 is of another provider.
_AWS_REGION: Final = re.compile(r"[a-z]{2,3}(-[a-z]+)+-\d+")


@dataclass(frozen=True, slots=True)
class _Service:
    """The provider of the nodes. Only AWS is recognised; other nodes are the platform's own service."""

    provider: str
    name: str
    subcategory: str


_AWS: Final = _Service("AWS", "Amazon EC2", "Virtual Machines")
_OWN: Final = _Service("Slipway", "GPU nodes", "Other (Compute)")


def row(entry: LedgerEntry) -> list[str]:
    """Return the values in the order of COLUMNS. An empty value is null."""
    values = (
        _costs(entry) | _periods(entry) | _charge(entry) | _resource(entry) | _allocation(entry)
    )
    return [values[column] for column in COLUMNS]


def _costs(entry: LedgerEntry) -> dict[str, str]:
    """Return the costs, which are equal because there is one price. A row without a price has cost 0."""
    return dict.fromkeys(_COSTS, f"{entry.cost_amount:f}") | {
        "BillingAccountId": "slipway",
        "BillingAccountName": "Slipway",
        "BillingCurrency": "USD",
        # The portal sees no invoices.
        "InvoiceId": _NULL,
        "PricingCurrency": "USD",
    }


def _periods(entry: LedgerEntry) -> dict[str, str]:
    month, next_month = _month(entry.hour)
    return {
        "BillingPeriodStart": _time(month),
        "BillingPeriodEnd": _time(next_month),
        "ChargePeriodStart": _time(entry.hour),
        "ChargePeriodEnd": _time(entry.hour + HOUR),
    }


def _charge(entry: LedgerEntry) -> dict[str, str]:
    """Usage has a unit price. Without one, GPU time is an adjustment of 0 dollars without quantities:
    FOCUS allows neither usage without a unit price nor a placeholder for one.
    """
    capacity = capacity_types.LABELS.get(entry.capacity_type, entry.capacity_type)
    place = f" in {entry.region}" if entry.region else ""
    described = f"{entry.instance_type or 'GPU'} node {entry.node_name}{place}, {capacity}"
    return {
        "ChargeCategory": "Usage" if entry.is_priced else "Adjustment",
        "ChargeClass": "Correction" if _corrects_closed_month(entry) else _NULL,
        "ChargeDescription": quote_formula(described),
        "ChargeFrequency": "Usage-Based",
        # What the price of a reserved node is agreed for is not known here.
        "CommitmentDiscountStatus": _NULL,
        **_price(entry),
    }


def _price(entry: LedgerEntry) -> dict[str, str]:
    price = entry.usd_per_hour_amount
    if price is None:
        return dict.fromkeys(PRICE_COLUMNS, _NULL)
    sku = entry.instance_type or "unlabelled"
    gpu_hours = (Decimal(entry.gpu_milliseconds) / HOUR_MS).quantize(_GPU_HOURS)
    details = {"InstanceType": sku, "x_CapacityType": entry.capacity_type}
    return dict.fromkeys(_UNIT_PRICES, f"{price:f}") | {
        "ConsumedQuantity": f"{gpu_hours:f}",
        "ConsumedUnit": "GPU-Hours",
        "PricingCategory": "Dynamic" if entry.capacity_type == capacity_types.SPOT else "Standard",
        "PricingQuantity": f"{_node_hours(entry, price):f}",
        "PricingUnit": "Hours",
        "SkuId": quote_formula(sku),
        "SkuMeter": "Node hours",
        "SkuPriceDetails": json.dumps(details, sort_keys=True),
        "SkuPriceId": quote_formula("/".join((sku, entry.capacity_type, entry.region or "any"))),
    }


def _node_hours(entry: LedgerEntry, price: Decimal) -> Decimal:
    """Return the part of the node's hour that is charged here; GPU time alone does not say it, because the last
    micro-dollars go to one of the holders.
    """
    return (entry.cost_amount / price).quantize(_NODE_HOURS) if price else Decimal(0)


def _resource(entry: LedgerEntry) -> dict[str, str]:
    is_aws = entry.capacity_type != capacity_types.OWN and _AWS_REGION.fullmatch(entry.region)
    service = _AWS if is_aws else _OWN
    return dict.fromkeys(_PROVIDERS, service.provider) | {
        "RegionId": quote_formula(entry.region),
        "RegionName": quote_formula(entry.region),
        "ResourceId": quote_formula(f"{entry.cluster_name}/{entry.node_uid or entry.node_name}"),
        "ResourceName": quote_formula(entry.node_name),
        "ResourceType": "GPU node",
        "ServiceCategory": "Compute",
        "ServiceName": service.name,
        "ServiceSubcategory": service.subcategory,
        "SubAccountId": quote_formula(entry.cluster_name),
        "SubAccountName": quote_formula(entry.cluster_name),
        "Tags": _tags({"capacity-type": entry.capacity_type, "cluster": entry.cluster_name}),
        "x_CapacityType": entry.capacity_type,
        "x_Cluster": quote_formula(entry.cluster_name),
    }


def _allocation(entry: LedgerEntry) -> dict[str, str]:
    """Idle is what is left of the charge: it has a method and a ratio, and no resource."""
    is_held = bool(entry.namespace)
    named = {"team": entry.team_slug, "caller": entry.caller}
    tags = {**entry.labels, **{name: value for name, value in named.items() if value}}
    return {
        "AllocatedMethodDetails": _method_details(entry),
        "AllocatedMethodId": METHOD,
        "AllocatedResourceId": (
            quote_formula(f"{entry.namespace}/{entry.workload_name}") if is_held else _NULL
        ),
        "AllocatedResourceName": quote_formula(entry.workload_name) if is_held else _NULL,
        "AllocatedTags": _tags(tags) if is_held and tags else _NULL,
        "x_Caller": quote_formula(entry.caller),
        "x_GpuMilliseconds": str(entry.gpu_milliseconds),
        "x_IsDemo": _flag(is_true=entry.is_demo),
        "x_IsPriced": _flag(is_true=entry.is_priced),
        "x_IsSealed": _flag(is_true=entry.is_sealed),
        "x_Kind": entry.kind,
        "x_Namespace": quote_formula(entry.namespace),
        "x_PriceSource": quote_formula(entry.price_source),
        "x_Team": entry.team_slug,
        "x_Workload": quote_formula(entry.workload_name),
    }


def _method_details(entry: LedgerEntry) -> str:
    """The ratios of the rows of a node's hour sum to 1; an adjustment is not a ratio of its hour."""
    whole = entry.node_gpu_milliseconds
    if not whole:
        return _NULL
    hours = (Decimal(entry.gpu_milliseconds) / HOUR_MS).quantize(_GPU_HOURS)
    ratio = (Decimal(entry.gpu_milliseconds) / whole).quantize(_RATIO)
    element = {
        "AllocatedRatio": float(ratio),
        "UsageUnit": "GPU-Hours",
        "UsageQuantity": float(hours),
    }
    return json.dumps({"Elements": [element]})


def _corrects_closed_month(entry: LedgerEntry) -> bool:
    """A correction within the month it corrects is a charge like any other."""
    if entry.kind != "adjustment" or entry.sealed_at is None:
        return False
    return entry.sealed_at >= _month(entry.hour)[1]


def _tags(values: Mapping[str, object]) -> str:
    """Tags that the platform sets have its prefix; one without a value is true."""
    tags = {f"slipway.dev/{name}": str(value) or True for name, value in values.items()}
    return json.dumps(tags, sort_keys=True)


def _flag(*, is_true: bool) -> str:
    return str(is_true).lower()


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _month(at: datetime) -> tuple[datetime, datetime]:
    first = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return first, first.replace(year=year, month=month)
