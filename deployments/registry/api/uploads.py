"""Uploads: start, sign parts, ask what is stored, complete, abandon. Bytes never pass here."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.serializers import (
    ListedVersionSerializer,
    PartsSerializer,
    PartUrlSerializer,
    SignPartsSerializer,
    StartedUploadSerializer,
    StartUploadSerializer,
    VersionSerializer,
)
from deployments.registry.selectors import versions
from deployments.registry.services import upload_endings, uploads
from deployments.registry.services.upload_validation import UploadDraft
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["uploads"]
REFUSALS = {403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM, 503: PROBLEM}


class ModelVersionsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = ListedVersionSerializer

    @extend_schema(
        operation_id="list_model_versions",
        tags=["versions"],
        responses={200: ListedVersionSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        actor = actor_of(request)
        model = versions.get_model(actor=actor, team_slug=team, name=name)
        page = self.paginate_queryset(versions.list_versions(actor=actor, model=model))
        return self.get_paginated_response(ListedVersionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="start_upload",
        tags=TAGS,
        request=StartUploadSerializer,
        responses={201: StartedUploadSerializer, **REFUSALS},
        description="Open an upload as a new version; the model is made with its first version. "
        "Then sign parts, PUT each to its URL, and complete.",
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read_body(StartUploadSerializer, request)
        draft = UploadDraft(
            filename=body["filename"],
            size_bytes=body["size_bytes"],
            sha256=body["sha256"],
            metadata=body["metadata"],
            declared=body.get("declared", {}),
            has_part_checksums=body["part_checksums"],
            is_duplicate_allowed=body["allow_duplicate"],
            head=body["head"] or b"",
        )
        version = uploads.start(
            actor=actor_of(request), team_slug=team, model_name=name, draft=draft
        )
        return Response(StartedUploadSerializer(version).data, status=status.HTTP_201_CREATED)


# Not repeatable under an Idempotency-Key: signing has no effect, and its answer is not to be kept.
class PartsView(APIView):
    @extend_schema(
        operation_id="list_parts",
        tags=TAGS,
        responses={200: PartsSerializer, **REFUSALS},
        description="What the object store itself holds; send the missing parts to resume.",
    )
    def get(self, request: Request, version_id: int) -> Response:
        state = uploads.stored_parts(actor=actor_of(request), version_id=version_id)
        return Response(PartsSerializer(state).data)

    @extend_schema(
        operation_id="sign_parts",
        tags=TAGS,
        request=SignPartsSerializer,
        responses={200: PartUrlSerializer(many=True), **REFUSALS},
    )
    def post(self, request: Request, version_id: int) -> Response:
        body = read_body(SignPartsSerializer, request)
        urls = uploads.sign_parts(actor=actor_of(request), version_id=version_id, **body)
        return Response(PartUrlSerializer(urls, many=True).data)


class CompleteView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="complete_upload",
        tags=TAGS,
        request=None,
        responses={200: VersionSerializer, **REFUSALS},
        description="Put the parts together and verify. Ask for the version until it is ready.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        version = uploads.complete(actor=actor_of(request), version_id=version_id)
        return Response(VersionSerializer(version).data)


class AbandonView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="abandon_upload",
        tags=TAGS,
        request=None,
        responses={200: VersionSerializer, **REFUSALS},
    )
    def post(self, request: Request, version_id: int) -> Response:
        version = uploads.abandon(actor=actor_of(request), version_id=version_id)
        return Response(VersionSerializer(version).data)


class StopVerificationView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="stop_verification",
        tags=TAGS,
        request=None,
        responses={200: VersionSerializer, **REFUSALS},
        description="End the examination of an uploaded file. The version fails, its bytes go; one that "
        "was ready before and is verified with a new declaration is ready again as it was.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        version = upload_endings.stop_verification(actor=actor_of(request), version_id=version_id)
        return Response(VersionSerializer(version).data)


class DiscardView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="discard_upload",
        tags=TAGS,
        request=None,
        responses={204: None, **REFUSALS},
        description="Throw away a failed or unfinished upload. It is in no list from then on, and a "
        "model that was made for it and holds nothing else goes with it.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        upload_endings.discard(actor=actor_of(request), version_id=version_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
