"""REST endpoints for the limit up to which rollouts of a team may promote automatically."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.plans.services import auto_promotion
from portal.accounts import teams
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["rollouts"]


class RolloutLimitSerializer(Serializer):
    percent = serializers.IntegerField(
        min_value=0,
        max_value=100,
        help_text="highest traffic weight in percent that a step can reach by automatic "
        "promotion; 0: every step needs manual promotion, 100: no limit",
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
        percent = auto_promotion.percent_of(actor=actor, team=team)
        return Response(RolloutLimitSerializer({"percent": percent}).data)

    @extend_schema(
        operation_id="set_rollout_limit",
        tags=TAGS,
        request=RolloutLimitSerializer,
        responses={200: RolloutLimitSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="Leads only. Applies immediately, also to running rollouts.",
    )
    def put(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(RolloutLimitSerializer, request)
        percent = auto_promotion.choose(actor=actor, team=team, percent=body["percent"])
        return Response(RolloutLimitSerializer({"percent": percent}).data)
