"""Usage and costs in the API, and their CSV exports."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.costs.api import span
from fleet.costs.api.serializers import (
    CostSeriesSerializer,
    CostSpanSerializer,
    CostsSerializer,
    SpanSerializer,
    UsagePageSerializer,
)
from fleet.costs.api.span import Span
from fleet.costs.domain import file_names, focus, focus_columns
from fleet.costs.domain.results import CostRow, CostTable
from fleet.costs.selectors import costs, ledger_entries, series, usage
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.costs.services import exports
from fleet.prices.domain.csv_cells import quote_formula
from portal.api import pagination
from portal.api.base_serializer import PageSerializer
from portal.api.requests import actor_of
from portal.core import csv_export

# Of a page: an answer has at most 150 kB.
_MOST_ROWS = 100
_MOST_POINTS = 500
_MOST_NODES = 50
_TABLE_COLUMNS = (
    "group",
    "team",
    "model",
    "deployment",
    "revision",
    "cluster",
    "is_idle",
    "cost_usd",
    "cost_allocated_usd",
    "cost_estimated_usd",
    "cost_previous_period_usd",
    "cost_per_1k_inferences_usd",
    "gpu_hours",
    "utilisation",
    "cost_used_usd",
    "inferences",
    "cost_per_1m_tokens_usd",
    "tokens",
    "idle_share_usd",
    "energy_kwh",
)


class UsageView(APIView):
    @extend_schema(
        operation_id="usage",
        tags=["costs"],
        parameters=[SpanSerializer, PageSerializer],
        responses=UsagePageSerializer,
    )
    def get(self, request: Request) -> Response:
        page = pagination.read_offset(request, most=_MOST_ROWS)
        period = span.read(request, actor_of(request))
        usage_by_key = usage.by_group(
            start=period.start,
            end=period.end,
            group_by=period.group_by,
            team_slugs=period.team_slugs,
        )
        ordered = sorted(usage_by_key.items(), key=lambda pair: pair[0].label)
        rows = [
            {"key": key, **asdict(group_usage)}
            for key, group_usage in ordered[page.offset : page.offset + page.limit]
        ]
        answer = {**page.links(len(ordered)), **_bounds(period), "results": rows}
        return Response(UsagePageSerializer(answer).data)


class CostsView(APIView):
    @extend_schema(
        operation_id="costs",
        tags=["costs"],
        description="Costs by group. Platform admins also see idle and unattributed costs.",
        parameters=[CostSpanSerializer, PageSerializer],
        responses=CostsSerializer,
    )
    def get(self, request: Request) -> Response:
        page = pagination.read_offset(request, most=_MOST_ROWS)
        table = _table(request, limit=page.limit, offset=page.offset)
        unpriced = table.spend.unpriced
        answer = {
            **page.links(table.row_count),
            "table": table,
            "unpriced_count": len(unpriced),
            "unpriced": unpriced[:_MOST_NODES],
        }
        return Response(CostsSerializer(answer).data)


class CostSeriesView(APIView):
    @extend_schema(
        operation_id="cost_series",
        tags=["costs"],
        parameters=[SpanSerializer, PageSerializer],
        responses=CostSeriesSerializer,
    )
    def get(self, request: Request) -> Response:
        page = pagination.read_offset(request, most=_MOST_POINTS)
        period = span.read(request, actor_of(request))
        points = series.series(
            team_slugs=period.team_slugs,
            start=period.start,
            end=period.end,
            group_by=period.group_by,
            step=period.step,
            day_offset=period.day_offset,
        )
        shown = points[page.offset : page.offset + page.limit]
        answer = {**page.links(len(points)), **_bounds(period), "results": shown}
        return Response(CostSeriesSerializer(answer).data)


class CsvRenderer(JSONRenderer):
    """Negotiates text/csv; the views stream the file themselves, so only problems are rendered here."""

    media_type = "text/csv"
    format = "csv"


class CostsCsvView(APIView):
    renderer_classes = (JSONRenderer, CsvRenderer)

    @extend_schema(
        operation_id="costs_csv",
        tags=["costs"],
        parameters=[CostSpanSerializer],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        table = _table(request)
        rows = [*table.rows, *([table.idle] if table.idle else [])]
        name = file_names.name_for_period("costs", table.start, table.end)
        return csv_export.stream(_TABLE_COLUMNS, map(_table_line, rows), name)


class LedgerCsvView(APIView):
    renderer_classes = (JSONRenderer, CsvRenderer)

    @extend_schema(
        operation_id="ledger_csv",
        tags=["costs"],
        description="All ledger rows in FOCUS 1.3 columns. Rows that are not sealed yet are marked.",
        parameters=[SpanSerializer],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        actor = actor_of(request)
        period = span.read(request, actor)
        exports.record(
            actor=actor, team_slugs=period.team_slugs, start=period.start, end=period.end
        )
        entries = ledger_entries.entries(
            team_slugs=period.team_slugs, row_filter=LedgerFilter(period.start, period.end)
        )
        name = file_names.name_for_period("ledger-focus", period.start, period.end)
        return csv_export.stream(focus_columns.COLUMNS, map(focus.row, entries), name)


def _bounds(period: Span) -> dict[str, datetime]:
    return {"start": period.start, "end": period.end}


def _table(request: Request, *, limit: int | None = None, offset: int = 0) -> CostTable:
    period = span.read(request, actor_of(request), CostSpanSerializer)
    return costs.table(
        team_slugs=period.team_slugs,
        start=period.start,
        end=period.end,
        group_by=period.group_by,
        limit=limit,
        offset=offset,
        idle_rule=period.idle_rule,
    )


def _table_line(row: CostRow) -> list[object]:
    key = row.key
    return [
        quote_formula(key.label),
        key.team_slug,
        quote_formula(key.model),
        quote_formula(key.deployment),
        key.revision,
        quote_formula(key.cluster_name),
        str(key.is_idle).lower(),
        row.amount,
        row.allocated_amount,
        row.estimated_amount,
        row.previous_amount,
        row.usd_per_1k_inferences_amount,
        row.gpu_hours,
        row.utilisation,
        row.used_amount,
        row.inferences,
        row.usd_per_1m_tokens_amount,
        row.tokens,
        row.idle_amount,
        row.energy_kwh,
    ]
