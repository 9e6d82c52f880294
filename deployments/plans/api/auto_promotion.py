"""How far rollouts of a team may go on by themselves."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api import delivery_serializers as shapes
from deployments.api.delivery import read
from deployments.services import rollout_limits
from portal.accounts import teams
from portal.api.views import PROBLEM, actor_of

TAGS = ["rollouts"]


class RolloutLimitSerializer(shapes.Shape):
    percent = serializers.IntegerField(
        min_value=0,
        max_value=100,
        help_text="the most requests in percent that a step may reach without a person; "
        "0: a person promotes every step, 100: as each approved plan says",
    )


class RolloutLimitView(APIView):
    @extend_schema(
        operation_id="read_rollout_limit",
        tags=TAGS,
        responses={200: RolloutLimitSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        percent = rollout_limits.percent_of(actor=actor, team=team)
        return Response(RolloutLimitSerializer({"percent": percent}).data)

    @extend_schema(
        operation_id="set_rollout_limit",
        tags=TAGS,
        request=RolloutLimitSerializer,
        responses={200: RolloutLimitSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="By a lead. Holds at once, also for rollouts that are under way.",
    )
    def put(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read(RolloutLimitSerializer, request)
        percent = rollout_limits.choose(actor=actor, team=team, percent=body["percent"])
        return Response(RolloutLimitSerializer({"percent": percent}).data)
