"""The API of what callers sent and cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.pagination import Cursor
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.api import span
from fleet.costs.api.serializers import START_HELP, MomentField
from fleet.costs.domain.callers import Rest
from fleet.costs.selectors import callers
from fleet.costs.selectors.callers import CallerCost
from portal.accounts import teams
from portal.api.base_serializer import Serializer, choice_of, dollars
from portal.api.pagination import CursorPage, bad_cursor
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM


class CallerSpanSerializer(Serializer):
    deployment = serializers.CharField(default="", help_text="Limit the answer to this deployment.")
    start = MomentField(required=False, help_text=START_HELP)
    end = MomentField(required=False)


class CallerPeriodSerializer(Serializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class CallerCostSerializer(Serializer):
    """The amounts of a deployment sum to its cost in sealed hours exactly."""

    team_slug = serializers.CharField()
    deployment = serializers.CharField()
    caller = serializers.CharField(help_text="Empty if not attributed to a caller.")
    not_attributed = choice_of(
        Rest,
        source="rest",
        allow_null=True,
        help_text="why: in hours without a request, by requests without a caller's key, or in hours in "
        "which callers were not counted; null for a caller",
    )
    requests = serializers.IntegerField(
        allow_null=True, help_text="answered ones, also in hours that are not sealed yet"
    )
    amount = dollars(help_text="Cost of sealed hours.")
    ratio = serializers.FloatField(
        allow_null=True, help_text="Share of the deployment's cost. Null if it cost nothing."
    )


# What _key makes.
_KEY: Final = re.compile(r"[^/]+/[01]/.+")


class CallerPage(CursorPage):
    """A page of computed rows. A cursor is the key of the last row before the page."""

    _next: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        rows: Sequence[CallerCost] = queryset
        self.base_url = request.build_absolute_uri()
        size = self.get_page_size(request) or self.page_size
        cursor = self.decode_cursor(request)
        after = str(cursor.position) if cursor else ""
        if cursor and not _KEY.fullmatch(after):
            raise bad_cursor()
        ordered = sorted((row for row in rows if _key(row) > after), key=_key)
        self._next = _key(ordered[size - 1]) if len(ordered) > size else None
        return ordered[:size]

    def _is_by_id(self) -> bool:
        return False

    def get_next_link(self) -> str | None:
        if self._next is None:
            return None
        # As in CursorPage: the stubs say a number.
        position: Any = self._next
        return self.encode_cursor(Cursor(offset=0, reverse=False, position=position))

    def get_previous_link(self) -> str | None:
        return None

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Add the hours that were summed."""
        page: dict[str, Any] = super().get_paginated_response_schema(schema)
        moment = {"type": "string", "format": "date-time"}
        page["properties"] |= {"start": moment, "end": moment}
        page["required"] = [*page.get("required", []), "start", "end"]
        return page


class CallerCostsView(GenericAPIView[Any]):
    serializer_class = CallerCostSerializer
    pagination_class = CallerPage

    @extend_schema(
        operation_id="list_caller_costs",
        tags=["costs"],
        description="List what each caller of a team's deployments sent, and its share of their cost.",
        parameters=[CallerSpanSerializer],
        responses={200: CallerCostSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        query = read_query(CallerSpanSerializer, request)
        team = teams.get_visible(actor=actor_of(request), slug=slug)
        period = span.parse_period(query)
        rows = callers.rows(
            team_slug=team.slug,
            start=period.start,
            end=period.end,
            deployment=query["deployment"],
        )
        page = self.paginate_queryset(rows)
        answer = self.get_paginated_response(CallerCostSerializer(page, many=True).data)
        answer.data |= CallerPeriodSerializer(period).data
        return answer


def _key(row: CallerCost) -> str:
    """Return the sort key: callers of a deployment by name, then what is not attributed."""
    return f"{row.deployment}/{'1' if row.rest else '0'}/{row.caller or row.rest}"
