"""CSV of what the Costs pages show. Text that a spreadsheet would run as a formula is quoted."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from django.http import StreamingHttpResponse

from fleet.costs.domain.results import CostTable, LedgerEntry

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TABLE_HEADER = [
    "group",
    "allocated_usd",
    "estimated_usd",
    "total_usd",
    "gpu_hours",
    "unpriced_gpu_hours",
    "utilisation",
    "utilisation_source",
    "inferences",
    "usd_per_1k_inferences",
    "previous_usd",
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
    "gpu_milliseconds",
    "cost_usd",
    "usd_per_hour",
    "price_source",
    "is_priced",
    "is_sealed",
    "is_demo",
]


class _Line:
    """csv writes into this; each line is handed on at once instead of being kept."""

    def write(self, text: str) -> str:
        return text


def table_csv(table: CostTable) -> StreamingHttpResponse:
    rows = [*table.rows, *([table.idle] if table.idle else [])]
    lines = (
        [
            _safe(row.key.label),
            row.allocated_amount,
            row.estimated_amount,
            row.amount,
            row.gpu_hours,
            row.unpriced_gpu_hours,
            "" if row.utilisation is None else f"{row.utilisation:.4f}",
            row.utilisation_source,
            "" if row.inferences is None else row.inferences,
            row.usd_per_1k_inferences_amount or "",
            "" if row.previous_amount is None else row.previous_amount,
        ]
        for row in rows
    )
    name = f"costs-{table.start:%Y%m%d}-{table.end:%Y%m%d}.csv"
    return _stream(_TABLE_HEADER, lines, name)


def ledger_csv(entries: Iterable[LedgerEntry], name: str) -> StreamingHttpResponse:
    lines = (
        [
            f"{entry.hour:%Y-%m-%dT%H:%MZ}",
            _safe(entry.cluster_name),
            _safe(entry.node_name),
            entry.instance_type,
            entry.capacity_type,
            entry.kind,
            entry.team_slug,
            _safe(entry.namespace),
            _safe(entry.workload_name),
            entry.gpu_milliseconds,
            entry.cost_amount,
            "" if entry.usd_per_hour_amount is None else entry.usd_per_hour_amount,
            _safe(entry.price_source),
            entry.is_priced,
            entry.is_sealed,
            entry.is_demo,
        ]
        for entry in entries
    )
    return _stream(_LEDGER_HEADER, lines, name)


def _stream(
    header: Iterable[str], lines: Iterable[Iterable[object]], name: str
) -> StreamingHttpResponse:
    def written() -> Iterator[str]:
        writer = csv.writer(_Line())
        yield writer.writerow(header)
        for line in lines:
            yield writer.writerow(line)

    response = StreamingHttpResponse(written(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
