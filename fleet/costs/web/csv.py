"""CSV of the Costs pages."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from django.http import StreamingHttpResponse

from fleet.costs.domain import file_names
from fleet.costs.domain.results import CostTable, LedgerEntry
from fleet.costs.domain.unit_prices import UnitPrice
from fleet.prices.domain.csv_cells import quote_formula
from portal.core import csv_export

_TABLE_HEADER = [
    "group",
    "allocated_usd",
    "estimated_usd",
    "total_usd",
    "gpu_hours",
    "unpriced_gpu_hours",
    "utilisation",
    "utilisation_source",
    "used_usd",
    "inferences",
    "usd_per_1k_inferences",
    "tokens",
    "usd_per_1m_tokens",
    "previous_usd",
    "idle_share_usd",
    "energy_kwh",
    "energy_gpu_hours",
    "too_few_for_a_price",
]
_LEDGER_HEADER = [
    "hour_utc",
    "cluster",
    "node",
    "instance_type",
    "capacity_type",
    "kind",
    "team",
    "namespace",
    "workload",
    "caller",
    "gpu_milliseconds",
    "cost_usd",
    "usd_per_hour",
    "price_source",
    "is_priced",
    "is_sealed",
    "is_demo",
]


def table_csv(table: CostTable) -> StreamingHttpResponse:
    rows = [*table.rows, *([table.idle] if table.idle else [])]
    lines = (
        [
            quote_formula(row.key.label),
            row.allocated_amount,
            row.estimated_amount,
            row.amount,
            row.gpu_hours,
            row.unpriced_gpu_hours,
            "" if row.utilisation is None else f"{row.utilisation:.4f}",
            row.utilisation_source,
            "" if row.used_amount is None else row.used_amount,
            "" if row.inferences is None else row.inferences,
            _price(row.inference_price),
            "" if row.tokens is None else row.tokens,
            _price(row.token_price),
            "" if row.previous_amount is None else row.previous_amount,
            row.idle_amount,
            "" if row.energy_kwh is None else row.energy_kwh,
            row.energy_gpu_hours,
            "; ".join(p.note for p in (row.inference_price, row.token_price) if p and p.note),
        ]
        for row in rows
    )
    name = file_names.name_for_period("costs", table.start, table.end)
    return csv_export.stream(_TABLE_HEADER, lines, name)


def _price(price: UnitPrice | None) -> Decimal | str:
    """Return the price for a CSV cell. Empty if too few were counted, so that a sum over the column excludes it;
    the last column says so.
    """
    return "" if price is None or price.is_of_too_few else price.amount


def ledger_csv(entries: Iterable[LedgerEntry], name: str) -> StreamingHttpResponse:
    lines = (
        [
            f"{entry.hour:%Y-%m-%dT%H:%MZ}",
            quote_formula(entry.cluster_name),
            quote_formula(entry.node_name),
            entry.instance_type,
            entry.capacity_type,
            entry.kind,
            entry.team_slug,
            quote_formula(entry.namespace),
            quote_formula(entry.workload_name),
            quote_formula(entry.caller),
            entry.gpu_milliseconds,
            entry.cost_amount,
            "" if entry.usd_per_hour_amount is None else entry.usd_per_hour_amount,
            quote_formula(entry.price_source),
            entry.is_priced,
            entry.is_sealed,
            entry.is_demo,
        ]
        for entry in entries
    )
    return csv_export.stream(_LEDGER_HEADER, lines, name)
