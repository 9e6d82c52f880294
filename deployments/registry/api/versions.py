"""Versions: lists, details, declarations and decisions."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.metadata_serializers import DescribeVersionSerializer
from deployments.registry.api.serializers import (
    DeclarationSerializer,
    ReasonSerializer,
    RegisterReferenceSerializer,
    ReleaseSerializer,
    TypicalStartSerializer,
    VersionSerializer,
)
from deployments.registry.selectors import served_revisions, starts
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.services import declarations, metadata, references, versions
from deployments.registry.services.references import ReferenceDraft
from portal.api.actions import action
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["versions"]


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
        description="Replace the metadata or the README of a version, or both. Facts about its bytes "
        "never change.",
    )
    def patch(self, request: Request, version_id: int) -> Response:
        body = read_body(DescribeVersionSerializer, request)
        version = metadata.describe(
            actor=actor_of(request),
            version_id=version_id,
            metadata=body.get("metadata"),
            readme=body.get("readme"),
        )
        return Response(VersionSerializer(version).data)


class VersionStartsView(APIView):
    @extend_schema(
        operation_id="list_version_starts",
        tags=TAGS,
        responses={200: TypicalStartSerializer(many=True), 404: PROBLEM},
        description="How long pods of the version took to start: medians of the last 20 starts by "
        "engine, model cache and instance type.",
    )
    def get(self, request: Request, version_id: int) -> Response:
        version = registry_versions.get_version(actor=actor_of(request), version_id=version_id)
        return Response(
            TypicalStartSerializer(
                starts.typical_starts(served_revisions.read_served_revisions(version)), many=True
            ).data
        )


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
