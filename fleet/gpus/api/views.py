"""Prices in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.gpus.api.serializers import PriceSerializer
from fleet.gpus.selectors import prices
from portal.core import clock


class PricesView(APIView):
    @extend_schema(
        operation_id="prices",
        tags=["fleet"],
        description="Current list prices with their source.",
        responses=PriceSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = prices.list_prices(on=clock.now().date())
        return Response(PriceSerializer(rows, many=True).data)
