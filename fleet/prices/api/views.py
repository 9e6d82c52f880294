"""Prices in the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.gpus.selectors import prices
from fleet.prices.api.serializers import LoadedSerializer, PriceListSerializer, PriceSerializer
from fleet.prices.domain.price_rows import HARDWARE
from fleet.prices.services import catalogue
from portal.accounts import policy
from portal.api.requests import actor_of, read_body
from portal.core import clock
from portal.core.errors import Invalid


class PricesView(APIView):
    @extend_schema(
        operation_id="prices",
        tags=["fleet"],
        description="Today's prices with their source.",
        responses=PriceSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = prices.list_prices(on=clock.now().date())
        return Response(PriceSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="load_prices",
        tags=["fleet"],
        description="Add prices, as lines of a price list. One for a day that has a price replaces it; sealed "
        "hours keep theirs. Needs a platform admin.",
        request=PriceListSerializer,
        responses=LoadedSerializer,
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        rows = [_line(row) for row in read_body(PriceListSerializer, request)["prices"]]
        loaded = catalogue.load_rows(actor=actor, rows=rows, refuse=_refuse_item)
        return Response(LoadedSerializer(loaded).data)


def _refuse_item(index: int, column: str, message: str) -> Invalid:
    """Name the item of the body, as the refusals of its serializer do."""
    name = "price_source" if column == "source" else column
    field = f"prices[{index}].{name}".removesuffix(".")
    return Invalid(f"Check {field}: {message}", fields={field: message})


def _line(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row as a line of a CSV price list. Hardware is given entirely or not at all; fields that are left
    out count as 0.
    """
    line = {name.removeprefix("price_"): str(value) for name, value in row.items()}
    if any(name in row for name in HARDWARE):
        line = {"gpu_memory_mib": "0", "vcpu": "0", "memory_gib": "0", **line}
        line["is_mig_capable"] = "yes" if row.get("is_mig_capable") else "no"
    return line
