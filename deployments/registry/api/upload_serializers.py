"""Serializers of uploads: files, parts and their completion."""

from __future__ import annotations

import base64
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.models import ArtifactFile
from deployments.registry.api.metadata_serializers import METADATA_HELP
from deployments.registry.api.serializers import DeclarationSerializer, VersionSerializer
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.services import file_uploads, upload_validation, uploads
from portal.api.base_serializer import Serializer

_MAX_PARTS = 1000
_MAX_PATH_LENGTH = 512
FILE_STATES = ("waiting", "sending", "stored", "verified")
# 4,096 bytes in base64.
MAX_HEAD_LENGTH: Final = 5464


class DraftFileSerializer(Serializer):
    path = serializers.CharField(
        max_length=_MAX_PATH_LENGTH, help_text='relative, with "/", such as "1/model.onnx"'
    )
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(default="", allow_blank=True, max_length=100)
    head = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_HEAD_LENGTH,
        help_text="the first 4,096 bytes of the file in base64, to refuse an unsupported format before "
        "the upload; without them the file extension decides",
    )

    def validate_head(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError as error:
            raise serializers.ValidationError("Send the bytes in base64.") from error


class StartUploadSerializer(Serializer):
    files = serializers.ListField(
        child=DraftFileSerializer(), min_length=1, max_length=artifact_files.MAX_FILES
    )
    metadata = serializers.DictField(default=dict, help_text=METADATA_HELP)
    readme = serializers.CharField(default="", allow_blank=True, help_text="Markdown")
    declared = DeclarationSerializer(required=False)
    part_checksums = serializers.BooleanField(
        default=False,
        help_text="send a SHA-256 with every part; S3 then rejects a part that does not match",
    )
    allow_duplicate = serializers.BooleanField(
        default=False, help_text="start even if a version already has the declared SHA-256"
    )


class PreviewUploadSerializer(Serializer):
    team = serializers.CharField(max_length=32)
    model = serializers.CharField(default="", allow_blank=True, max_length=200)
    files = serializers.ListField(
        child=DraftFileSerializer(), min_length=1, max_length=artifact_files.MAX_FILES
    )


class SameSizesSerializer(Serializer):
    id = serializers.IntegerField()
    number = serializers.IntegerField()


class UploadPreviewSerializer(Serializer):
    format_name = serializers.CharField(help_text="Empty while needed_heads are missing.")
    problem = serializers.CharField(help_text="why the upload would be refused; empty if it is not")
    needed_heads = serializers.ListField(
        child=serializers.CharField(),
        help_text="paths whose first 4,096 bytes decide the format: send them in head",
    )
    same_sizes = SameSizesSerializer(
        many=True,
        help_text="versions of the model with files of exactly these paths and sizes: compare digests",
    )


class ArtifactFileSerializer(Serializer):
    """A file of a version. All parts but the last have `part_size` bytes."""

    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    part_size = serializers.IntegerField(
        source="part_size_bytes", help_text="bytes of every part except the last"
    )
    part_count = serializers.SerializerMethodField()
    sha256 = serializers.SerializerMethodField()
    s3_version_id = serializers.CharField()
    state = serializers.SerializerMethodField()

    def get_part_count(self, file: ArtifactFile) -> int:
        return file_uploads.plan_of(file).count

    def get_sha256(self, file: ArtifactFile) -> str:
        """The SHA-256 of the stored bytes. Until they are verified, the declared one."""
        return file.sha256 or file.declared_sha256

    @extend_schema_field(serializers.ChoiceField(choices=FILE_STATES))
    def get_state(self, file: ArtifactFile) -> str:
        if file.sha256:
            return "verified"
        if file.s3_version_id:
            return "stored"
        return "sending" if file.upload_id else "waiting"


class StartedUploadSerializer(VersionSerializer):
    """A version and the files that have to be sent."""

    files = ArtifactFileSerializer(many=True)


class PartsOfFileSerializer(Serializer):
    path = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=_MAX_PATH_LENGTH,
        help_text="may be left out where the upload has one file",
    )
    numbers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MAX_PARTS),
        default=list,
        max_length=_MAX_PARTS,
    )
    checksums = serializers.DictField(
        child=serializers.RegexField(r"^[A-Za-z0-9+/]{43}=$"),
        default=dict,
        help_text="base64 SHA-256 by part number; required with part_checksums",
    )

    def validate_checksums(self, value: dict[str, str]) -> dict[int, str]:
        if not all(number.isascii() and number.isdigit() and len(number) < 5 for number in value):
            raise serializers.ValidationError("Name each checksum by its part number.")
        return {int(number): checksum for number, checksum in value.items()}


class SignPartsSerializer(PartsOfFileSerializer):
    files = serializers.ListField(
        child=PartsOfFileSerializer(),
        default=list,
        max_length=upload_validation.MAX_SIGNED_PARTS,
        help_text="parts of several files, in place of path, numbers and checksums; at most "
        f"{upload_validation.MAX_SIGNED_PARTS} parts together",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        own = {name: attrs[name] for name in ("path", "numbers", "checksums")}
        if attrs["files"] and any(own.values()):
            raise serializers.ValidationError({"files": "Send either files or numbers, not both."})
        return {"files": attrs["files"] or [own]}


class PartUrlSerializer(Serializer):
    """A URL for one PUT of exactly `size_bytes`, with these headers."""

    path = serializers.CharField(help_text="Path of the file.")
    number = serializers.IntegerField()
    url = serializers.CharField(help_text="Address for one PUT of exactly size_bytes.")
    size_bytes = serializers.IntegerField()
    headers = serializers.DictField(
        child=serializers.CharField(), help_text="send these with the PUT; they are signed"
    )


class StoredPartSerializer(Serializer):
    number = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(
        source="sha256_base64", help_text="base64, of uploads with part_checksums; else empty"
    )


class PartsQuerySerializer(Serializer):
    path = serializers.CharField(
        default="", allow_blank=True, help_text="may be left out for an upload of one file"
    )


class PartsSerializer(Serializer):
    """The state of a file's upload; the parts in `missing` still have to be sent."""

    part_size = serializers.IntegerField(source="plan.part_bytes")
    part_count = serializers.IntegerField(source="plan.count")
    stored = StoredPartSerializer(many=True)
    missing = serializers.ListField(
        child=serializers.IntegerField(), help_text="parts that still have to be sent"
    )


class CompleteFilesSerializer(Serializer):
    paths = serializers.ListField(
        child=serializers.CharField(max_length=_MAX_PATH_LENGTH),
        min_length=1,
        max_length=uploads.MAX_COMPLETED_AT_ONCE,
    )
