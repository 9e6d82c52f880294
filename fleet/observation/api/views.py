"""Pods in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.observation.api import serializers as observation_serializers
from fleet.observation.selectors import pods
from portal.api.views import actor_of


class PodsView(GenericAPIView[Any]):
    serializer_class = observation_serializers.PodSerializer

    @extend_schema(
        operation_id="pods",
        tags=["fleet"],
        description="Current pods of your teams, newest first.",
        parameters=[observation_serializers.PodFilterSerializer],
        responses=observation_serializers.PodSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        asked = observation_serializers.PodFilterSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = pods.list_visible_to(
            actor_of(request),
            cluster_id=asked.validated_data.get("cluster"),
            team_slug=asked.validated_data.get("team"),
        )
        page = self.paginate_queryset(found)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
