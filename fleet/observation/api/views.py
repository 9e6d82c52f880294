"""Pods in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.observation.api.serializers import PodFilterSerializer, PodSerializer
from fleet.observation.selectors import pods
from portal.api.requests import actor_of, read_query


class PodsView(GenericAPIView[Any]):
    serializer_class = PodSerializer

    @extend_schema(
        operation_id="pods",
        tags=["fleet"],
        description="Current pods of your teams, newest first.",
        parameters=[PodFilterSerializer],
        responses=PodSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        query = read_query(PodFilterSerializer, request)
        rows = pods.list_visible_to(
            actor_of(request),
            cluster_id=query.get("cluster"),
            team_slug=query.get("team"),
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
