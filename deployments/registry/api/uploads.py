"""Uploads: start, sign parts, list stored parts, complete, abandon. Bytes go directly to S3."""

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
from portal.api import responses
from portal.api.actions import action
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["uploads"]
REFUSALS = {**responses.REFUSALS, 503: PROBLEM}


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
        description="Open an upload as a new version; the first version creates the model. "
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


# No Idempotency-Key: signing has no effect, and signed URLs must not be stored.
class PartsView(APIView):
    @extend_schema(
        operation_id="list_parts",
        tags=TAGS,
        responses={200: PartsSerializer, **REFUSALS},
        description="The parts in the object store. Send the missing parts to resume.",
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


CompleteView = action(
    uploads.complete,
    operation_id="complete_upload",
    tags=TAGS,
    shown_by=VersionSerializer,
    refusals=REFUSALS,
    description="Assemble the parts and start the verification. Poll the version until it is ready.",
)
AbandonView = action(
    uploads.abandon,
    operation_id="abandon_upload",
    tags=TAGS,
    shown_by=VersionSerializer,
    refusals=REFUSALS,
)
StopVerificationView = action(
    upload_endings.stop_verification,
    operation_id="stop_verification",
    tags=TAGS,
    shown_by=VersionSerializer,
    refusals=REFUSALS,
    description="Stop the verification. The version fails and its bytes are deleted; a version that "
    "was ready before returns to its previous declaration.",
)
DiscardView = action(
    upload_endings.discard,
    operation_id="discard_upload",
    tags=TAGS,
    shown_by=None,
    status=status.HTTP_204_NO_CONTENT,
    refusals=REFUSALS,
    description="Delete a failed or unfinished upload. A model that was created for it and has "
    "nothing else is deleted as well.",
)
