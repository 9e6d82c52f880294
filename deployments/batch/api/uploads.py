"""Uploads of rows by REST, in the same steps as those of versions. Bytes go directly to S3."""

from __future__ import annotations

from typing import Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.batch.services import uploads
from deployments.models import BatchUpload
from deployments.registry.api.upload_serializers import (
    PartsQuerySerializer,
    PartsSerializer,
    PartUrlSerializer,
    SignPartsSerializer,
)
from deployments.registry.api.uploads import REFUSALS
from deployments.registry.services import file_uploads
from portal.api.actions import action
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_body

TAGS: Final = ["batch"]


class StartBatchUploadSerializer(Serializer):
    team = serializers.CharField(max_length=40, source="team_slug")
    filename = serializers.CharField(
        max_length=400, help_text="ends with .csv, or with .jsonl for JSON lines"
    )
    size_bytes = serializers.IntegerField()
    part_checksums = serializers.BooleanField(
        default=False,
        help_text="send a SHA-256 with every part; S3 then rejects a part that does not match",
    )


class BatchUploadSerializer(Serializer):
    """An upload of a file of rows. Once it is complete, a job can read it as `input`."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="team.slug")
    path = serializers.CharField(help_text="the name of the file")
    size_bytes = serializers.IntegerField()
    input = serializers.SerializerMethodField(help_text="the input of a job, once it is complete")
    is_complete = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField(help_text="an incomplete one is forgotten then")

    def get_input(self, upload: BatchUpload) -> str:
        return uploads.uri_of(upload)

    def get_is_complete(self, upload: BatchUpload) -> bool:
        return bool(upload.s3_version_id)


class BatchFileSerializer(Serializer):
    """A file of rows in the team's area, with the fields of a version's file that the browser reads too."""

    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    part_size = serializers.IntegerField(
        source="part_size_bytes", help_text="bytes of every part except the last"
    )
    part_count = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()

    def get_part_count(self, file: BatchUpload) -> int:
        return file_uploads.plan_of(file).count

    @extend_schema_field(serializers.ChoiceField(choices=("waiting", "sending", "stored")))
    def get_state(self, file: BatchUpload) -> str:
        if file.s3_version_id:
            return "stored"
        return "sending" if file.upload_id else "waiting"


class BatchUploadFilesView(APIView):
    @extend_schema(
        operation_id="list_batch_upload_files",
        tags=TAGS,
        responses={200: BatchFileSerializer(many=True), **REFUSALS},
        description="The one file of the upload, as of an upload of a version.",
    )
    def get(self, request: Request, upload_id: int) -> Response:
        upload = uploads.get(actor=actor_of(request), upload_id=upload_id)
        return Response(BatchFileSerializer([upload], many=True).data)


# No Idempotency-Key: signing has no effect, and signed URLs must not be stored.
class BatchUploadPartsView(APIView):
    @extend_schema(
        operation_id="list_batch_upload_parts",
        tags=TAGS,
        parameters=[PartsQuerySerializer],
        responses={200: PartsSerializer, **REFUSALS},
        description="The parts in the object store. Send the missing parts to resume.",
    )
    def get(self, request: Request, upload_id: int) -> Response:
        state = uploads.stored_parts(actor=actor_of(request), upload_id=upload_id)
        return Response(PartsSerializer(state).data)

    @extend_schema(
        operation_id="sign_batch_upload_parts",
        tags=TAGS,
        request=SignPartsSerializer,
        responses={200: PartUrlSerializer(many=True), **REFUSALS},
    )
    def post(self, request: Request, upload_id: int) -> Response:
        (item, *_) = read_body(SignPartsSerializer, request)["files"]
        urls = uploads.sign_parts(
            actor=actor_of(request),
            upload_id=upload_id,
            numbers=item["numbers"],
            checksums=item["checksums"],
        )
        return Response(PartUrlSerializer(urls, many=True).data)


StartView = action(
    uploads.start,
    operation_id="start_batch_upload",
    tags=TAGS,
    body=StartBatchUploadSerializer,
    status=201,
    shown_by=BatchUploadSerializer,
    refusals=REFUSALS,
    description="Open an upload of a file of rows. Then sign its parts, PUT each to its URL, and complete it; `input` is "
    "the address for a batch job.",
)
CompleteView = action(
    uploads.complete,
    operation_id="complete_batch_upload",
    tags=TAGS,
    shown_by=BatchUploadSerializer,
    refusals=REFUSALS,
    description="Assemble the parts. The file can then be the input of a job.",
)

_ONE: Final = "batch-uploads/<int:upload_id>"
urlpatterns: list[URLPattern] = [
    path("batch-uploads", StartView.as_view(), name="start-batch-upload"),
    path(f"{_ONE}/files", BatchUploadFilesView.as_view(), name="batch-upload-files"),
    path(f"{_ONE}/parts", BatchUploadPartsView.as_view(), name="batch-upload-parts"),
    path(f"{_ONE}/complete", CompleteView.as_view(), name="complete-batch-upload"),
]
