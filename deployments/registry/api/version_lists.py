"""Find versions: a list, and counts by what could be chosen next."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.serializers import ListedVersionSerializer
from deployments.registry.api.version_filters import (
    AgePage,
    MetricPage,
    VersionFilterSerializer,
    VersionListSerializer,
    filter_of,
)
from deployments.registry.selectors import (
    listed_versions,
    quarantined_in_use,
    version_search,
)
from deployments.states import DeploymentState
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM

TAGS = ["versions"]


class FacetValueSerializer(Serializer):
    value = serializers.CharField()
    count = serializers.IntegerField()


class FacetSerializer(Serializer):
    name = serializers.CharField(help_text="team, format, state, task, label or metric")
    values = FacetValueSerializer(many=True)


class QuarantinedUseSerializer(Serializer):
    version_id = serializers.IntegerField(source="version.pk")
    version = serializers.CharField(source="version.label")
    team = serializers.CharField(source="version.model.team.slug")
    reason = serializers.CharField(source="version.state_reason")
    scan_engines = serializers.CharField(source="version.scan_engines")
    deployment_id = serializers.IntegerField(source="deployment.pk")
    deployment = serializers.CharField(source="deployment.name")
    deployment_state = choice_of(DeploymentState, source="deployment.state")
    cluster = serializers.CharField(source="deployment.cluster.name")


class QuarantinedUsesView(APIView):
    @extend_schema(
        operation_id="list_quarantined_in_use",
        tags=TAGS,
        responses={200: QuarantinedUseSerializer(many=True)},
        description="Live deployments that serve a quarantined version: a scanner changed its verdict, or "
        f"a release ended. They continue. At most {quarantined_in_use.MAX_ROWS}.",
    )
    def get(self, request: Request) -> Response:
        rows = quarantined_in_use.list_uses(actor=actor_of(request))
        return Response(QuarantinedUseSerializer(rows, many=True).data)


class VersionsView(GenericAPIView[Any]):
    serializer_class = ListedVersionSerializer

    @extend_schema(
        operation_id="list_versions",
        tags=TAGS,
        parameters=[VersionListSerializer],
        responses={200: ListedVersionSerializer(many=True), 422: PROBLEM},
        description="Versions of all models that you may see.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(VersionListSerializer, request)
        kind, _, metric = query["sort"].removeprefix("-").partition(":")
        is_descending = query["sort"].startswith("-")
        pages: AgePage | MetricPage = AgePage(is_descending=is_descending)
        found = version_search.search(actor=actor_of(request), filters=filter_of(query))
        rows = listed_versions.columns(found)
        if kind == "metric":
            rows = version_search.with_metric(rows, metric)
            pages = MetricPage(is_descending=is_descending)
        page = listed_versions.read(pages.paginate_queryset(rows, request, view=self) or ())
        return pages.get_paginated_response(ListedVersionSerializer(page, many=True).data)


class VersionFacetsView(APIView):
    @extend_schema(
        operation_id="count_versions",
        tags=TAGS,
        parameters=[VersionFilterSerializer],
        responses={200: FacetSerializer(many=True), 422: PROBLEM},
        description="Counts of the matching versions by team, format, state, task, label and metric; each "
        "without the choice of that one itself. At most 12 values of each.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(VersionFilterSerializer, request)
        rows = version_search.count(actor=actor_of(request), filters=filter_of(query)).facets
        return Response(FacetSerializer(rows, many=True).data)
