"""Versions: lists, details, declarations and decisions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.serializers import (
    DeclarationSerializer,
    DescribeVersionSerializer,
    ListedVersionSerializer,
    ReasonSerializer,
    RegisterReferenceSerializer,
    ReleaseSerializer,
    VersionSerializer,
)
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.services import declarations, metadata, references, versions
from deployments.registry.services.references import ReferenceDraft
from deployments.states import VersionState
from portal.api.actions import action
from portal.api.base_serializer import Serializer, choice_of
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["versions"]


class VersionFilterSerializer(Serializer):
    state = choice_of(VersionState, default="", allow_blank=True)
    sha256 = serializers.CharField(default="", allow_blank=True, max_length=64)


class VersionsView(GenericAPIView[Any]):
    serializer_class = ListedVersionSerializer

    @extend_schema(
        operation_id="list_versions",
        tags=TAGS,
        parameters=[VersionFilterSerializer],
        responses={200: ListedVersionSerializer(many=True), 422: PROBLEM},
        description="Versions of all models that you may see, newest first.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(VersionFilterSerializer, request)
        rows = registry_versions.list_versions(actor=actor_of(request), **query)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(ListedVersionSerializer(page, many=True).data)


class VersionView(ConditionalMixin, APIView):
    @extend_schema(
        operation_id="get_version",
        tags=TAGS,
        responses={200: VersionSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, version_id: int) -> Response:
        version = registry_versions.get_version(actor=actor_of(request), version_id=version_id)
        return Response(VersionSerializer(version).data)

    @extend_schema(
        operation_id="describe_version",
        tags=TAGS,
        request=DescribeVersionSerializer,
        responses={200: VersionSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="Replace the metadata of a version. Facts about its bytes never change.",
    )
    def patch(self, request: Request, version_id: int) -> Response:
        body = read_body(DescribeVersionSerializer, request)
        version = metadata.describe(
            actor=actor_of(request), version_id=version_id, metadata=body["metadata"]
        )
        return Response(VersionSerializer(version).data)


class ReferencesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="register_reference",
        tags=TAGS,
        request=RegisterReferenceSerializer,
        responses={201: VersionSerializer, **REFUSALS},
        description="Register a version whose weights stay on Hugging Face, a volume or in a registry. It "
        "is ready at once; its bytes are not read. The first version creates the model.",
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read_body(RegisterReferenceSerializer, request)
        version = references.register(
            actor=actor_of(request),
            team_slug=team,
            model_name=name,
            draft=ReferenceDraft(**body),
        )
        return Response(VersionSerializer(version).data, status=status.HTTP_201_CREATED)


class NumberedVersionView(APIView):
    @extend_schema(
        operation_id="get_version_by_number",
        tags=TAGS,
        responses={200: VersionSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str, number: int) -> Response:
        version = registry_versions.get_version_by_number(
            actor=actor_of(request), team_slug=team, name=name, number=number
        )
        return Response(VersionSerializer(version).data)


ArchiveView = action(
    versions.archive,
    operation_id="archive_version",
    tags=TAGS,
    body=ReasonSerializer,
    shown_by=VersionSerializer,
)
RestoreView = action(
    versions.restore, operation_id="restore_version", tags=TAGS, shown_by=VersionSerializer
)
ReleaseView = action(
    versions.release,
    operation_id="release_version",
    tags=TAGS,
    body=ReleaseSerializer,
    shown_by=VersionSerializer,
    description="Allow deployments of a quarantined version for some days. Platform admins only.",
)
DeclareView = action(
    declarations.declare,
    operation_id="declare_version",
    tags=TAGS,
    body=DeclarationSerializer,
    shown_by=VersionSerializer,
    description="Declare whether the model supports batching and its largest input sizes; the "
    "version is verified again. Refused once a revision uses the version.",
)
