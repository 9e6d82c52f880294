"""Days that cost more or less than is usual, in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.costs.api import span
from fleet.costs.selectors import anomalies
from portal.api import pagination
from portal.api.base_serializer import PageSerializer, Serializer, dollars
from portal.api.requests import actor_of, read_query

_MOST_DAYS = 100


class TeamSerializer(Serializer):
    team = serializers.CharField(required=False, help_text="one of your teams; default: all")


class UnusualDaySerializer(Serializer):
    """A day that cost far more or less than usual."""

    team_slug = serializers.CharField(help_text="Empty if not attributed to a team.")
    deployment = serializers.CharField(help_text="Empty for the team as a whole.")
    day = serializers.DateField(source="anomaly.day", help_text="UTC")
    amount = dollars(source="anomaly.amount", help_text="sealed hours")
    usual_amount = dollars(
        source="anomaly.usual_amount",
        help_text="the median of the 28 days before, or of the same weekday among them: the nearer one",
    )


class UnusualDaysSerializer(Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    computed_at = serializers.DateTimeField()
    results = UnusualDaySerializer(many=True)


class UnusualDaysView(APIView):
    @extend_schema(
        operation_id="unusual_days",
        tags=["costs"],
        description="Days of the last week with unusual costs of a team or a deployment, the newest first. "
        "Updated every hour.",
        parameters=[TeamSerializer, PageSerializer],
        responses=UnusualDaysSerializer,
    )
    def get(self, request: Request) -> Response:
        page = pagination.read_offset(request, most=_MOST_DAYS)
        query = read_query(TeamSerializer, request)
        slugs = span.visible_slugs(actor_of(request), query.get("team"))
        recent = anomalies.recent()
        days = anomalies.filter_by_teams(recent, slugs)
        answer = {
            **page.links(len(days)),
            "computed_at": recent.computed_at,
            "results": days[page.offset : page.offset + page.limit],
        }
        return Response(UnusualDaysSerializer(answer).data)
