"""Uploads: start, sign parts, list stored parts, complete, abandon. Bytes go directly to S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.serializers import ListedVersionSerializer, VersionSerializer
from deployments.registry.api.upload_serializers import (
    ArtifactFileSerializer,
    CompleteFilesSerializer,
    PartsQuerySerializer,
    PartsSerializer,
    PartUrlSerializer,
    PreviewUploadSerializer,
    SignPartsSerializer,
    StartedUploadSerializer,
    StartUploadSerializer,
    UploadPreviewSerializer,
)
from deployments.registry.selectors import listed_versions, versions
from deployments.registry.services import (
    upload_endings,
    upload_signing,
    upload_validation,
    uploads,
)
from deployments.registry.services.upload_signing import PartsToSign
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from portal.api import responses
from portal.api.actions import action
from portal.api.idempotency import IdempotentMixin
from portal.api.pagination import CursorPage
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM

TAGS = ["uploads"]
REFUSALS = {**responses.REFUSALS, 503: PROBLEM}


def _draft_files(body: Mapping[str, Any]) -> list[DraftFile]:
    return [
        DraftFile(
            path=file["path"],
            size_bytes=file["size_bytes"],
            sha256=file["sha256"],
            head=file["head"] or b"",
        )
        for file in body["files"]
    ]


class ModelVersionsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = ListedVersionSerializer

    @extend_schema(
        operation_id="list_model_versions",
        tags=["versions"],
        responses={200: ListedVersionSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        actor, pages = actor_of(request), CursorPage()
        model = versions.get_model(actor=actor, team_slug=team, name=name)
        rows = listed_versions.columns(versions.list_versions(actor=actor, model=model))
        page = listed_versions.read(pages.paginate_queryset(rows, request, view=self) or ())
        return pages.get_paginated_response(ListedVersionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="start_upload",
        tags=TAGS,
        request=StartUploadSerializer,
        responses={201: StartedUploadSerializer, **REFUSALS},
        description="Open an upload of one or many files as a new version; the first version creates "
        "the model. Then, for each file, sign its parts, PUT each to its URL, and complete the file; "
        "at the end complete the upload.",
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read_body(StartUploadSerializer, request)
        draft = UploadDraft(
            files=_draft_files(body),
            metadata=body["metadata"],
            readme=body["readme"],
            declared=body.get("declared", {}),
            has_part_checksums=body["part_checksums"],
            is_duplicate_allowed=body["allow_duplicate"],
        )
        version = uploads.start(
            actor=actor_of(request), team_slug=team, model_name=name, draft=draft
        )
        return Response(StartedUploadSerializer(version).data, status=status.HTTP_201_CREATED)


class PreviewView(APIView):
    @extend_schema(
        operation_id="preview_upload",
        tags=TAGS,
        request=PreviewUploadSerializer,
        responses={200: UploadPreviewSerializer, **REFUSALS},
        description=(
            "Say what these files are and whether an upload of them would be refused. Changes "
            "nothing."
        ),
    )
    def post(self, request: Request) -> Response:
        body = read_body(PreviewUploadSerializer, request)
        preview = upload_validation.preview(
            actor=actor_of(request),
            team_slug=body["team"],
            model_name=body["model"],
            draft=UploadDraft(files=_draft_files(body)),
        )
        return Response(UploadPreviewSerializer(preview).data)


# No Idempotency-Key: signing has no effect, and signed URLs must not be stored.
class PartsView(APIView):
    @extend_schema(
        operation_id="list_parts",
        tags=TAGS,
        parameters=[PartsQuerySerializer],
        responses={200: PartsSerializer, **REFUSALS},
        description="The parts of a file in the object store. Send the missing parts to resume.",
    )
    def get(self, request: Request, version_id: int) -> Response:
        state = uploads.stored_parts(
            actor=actor_of(request),
            version_id=version_id,
            path=read_query(PartsQuerySerializer, request)["path"],
        )
        return Response(PartsSerializer(state).data)

    @extend_schema(
        operation_id="sign_parts",
        tags=TAGS,
        request=SignPartsSerializer,
        responses={200: PartUrlSerializer(many=True), **REFUSALS},
        description="URLs of parts of one file, or of several files: a folder of small files is then "
        "signed with few requests.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        body = read_body(SignPartsSerializer, request)
        files = [PartsToSign(**item) for item in body["files"]]
        urls = upload_signing.sign_parts(
            actor=actor_of(request), version_id=version_id, files=files
        )
        return Response(PartUrlSerializer(urls, many=True).data)


class FilesView(APIView):
    @extend_schema(
        operation_id="list_files",
        tags=TAGS,
        responses={200: ArtifactFileSerializer(many=True), **REFUSALS},
        description="The files of a version, by path.",
    )
    def get(self, request: Request, version_id: int) -> Response:
        version = versions.get_version(actor=actor_of(request), version_id=version_id)
        return Response(ArtifactFileSerializer(version.files.all(), many=True).data)


CompleteFilesView = action(
    uploads.complete_files,
    operation_id="complete_files",
    tags=TAGS,
    body=CompleteFilesSerializer,
    shown_by=VersionSerializer,
    refusals=REFUSALS,
    description="Assemble the parts of these files. The upload stays open for the others.",
)
CompleteView = action(
    uploads.complete,
    operation_id="complete_upload",
    tags=TAGS,
    shown_by=VersionSerializer,
    refusals=REFUSALS,
    description="Assemble what is not assembled yet (up to 100 files) and start the verification. Poll the version until it is ready.",
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
