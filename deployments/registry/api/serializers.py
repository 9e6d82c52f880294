"""Serializers of the registry's API."""

from __future__ import annotations

import base64
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.models import ModelVersion
from deployments.registry.domain import declarations, external_weights
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH
from deployments.sizing.selectors import measurements
from deployments.states import VersionState
from portal.api.base_serializer import Serializer, choice_of

_MAX_PARTS = 1000
# 4,096 bytes in base64.
MAX_HEAD_LENGTH: Final = 5464


class TensorSerializer(Serializer):
    name = serializers.CharField()
    dtype = serializers.CharField(help_text="Triton's data type without TYPE_")
    dims = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="as in the file, with the batch dimension; -1: dynamic",
    )


class SignatureSerializer(Serializer):
    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)
    max_batch_size = serializers.IntegerField(help_text="0: no batching")
    batching = serializers.CharField(
        required=False, help_text="why batching is on or off, with the fix"
    )
    largest_inputs = serializers.CharField(
        required=False, help_text="the input sizes of the GPU memory estimate"
    )
    opset = serializers.DictField(child=serializers.IntegerField(), required=False)
    parameter_count = serializers.IntegerField(required=False)
    producer = serializers.CharField(required=False)


class DeclarationSerializer(Serializer):
    """What the file does not contain."""

    takes_batches = serializers.BooleanField(
        default=None,
        allow_null=True,
        help_text="whether the first dimension is a batch dimension; used if the trial run is "
        "inconclusive. false turns batching off",
    )
    largest_batch = serializers.IntegerField(default=DEFAULT_MAX_BATCH, help_text="max batch size")
    largest_inputs = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField(), max_length=100),
        default=dict,
        help_text="by input, the largest dimensions, in the order of the file; -1: not declared. "
        "Used to estimate GPU memory",
    )


class CheckSerializer(Serializer):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="null: not known yet, or not tried")
    detail = serializers.CharField()


class AliasSerializer(Serializer):
    name = serializers.CharField()
    version = serializers.IntegerField(source="version.number")
    is_protected = serializers.BooleanField()
    moved_at = serializers.DateTimeField()


class ModelSerializer(Serializer):
    id = serializers.IntegerField()
    team = serializers.CharField(source="team.slug")
    name = serializers.CharField()
    description = serializers.CharField()
    task = serializers.CharField()
    aliases = AliasSerializer(many=True)
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class NewModelSerializer(Serializer):
    team = serializers.CharField(max_length=32)
    name = serializers.CharField(max_length=200)
    description = serializers.CharField(default="", allow_blank=True)
    task = serializers.CharField(default="", allow_blank=True)


class DescribeModelSerializer(Serializer):
    description = serializers.CharField(required=False, allow_blank=True)
    task = serializers.CharField(required=False, allow_blank=True)


class ListedVersionSerializer(Serializer):
    """A version in a list, without signature and configuration, which can be large."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="model.team.slug")
    model = serializers.CharField(source="model.name")
    number = serializers.IntegerField()
    state = choice_of(VersionState)
    state_reason = serializers.CharField(help_text="why it is quarantined or failed, with the fix")
    deadline_at = serializers.DateTimeField(
        allow_null=True, help_text="when uploading, verifying, or a release from quarantine ends"
    )
    source_uri = serializers.CharField(
        help_text="location of external weights; empty for an uploaded version"
    )
    is_pinned = serializers.SerializerMethodField()
    filename = serializers.CharField()
    format = serializers.CharField()
    size_bytes = serializers.IntegerField(allow_null=True)
    declared_size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(help_text="of the stored bytes; empty until verified")
    declared_sha256 = serializers.CharField()
    bucket = serializers.CharField()
    key = serializers.CharField()
    s3_version_id = serializers.CharField()
    storage_uri = serializers.SerializerMethodField()
    metadata = serializers.DictField()
    checks = CheckSerializer(many=True)
    vram_estimate_mib = serializers.IntegerField(
        allow_null=True, help_text="upper bound, at the largest declared input sizes and batch"
    )
    declared = serializers.SerializerMethodField()
    aliases = serializers.SerializerMethodField()
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)

    def get_storage_uri(self, version: ModelVersion) -> str:
        """The serving repository; empty until it is created."""
        return version.storage_uri if version.repository_prefix or version.source_uri else ""

    def get_is_pinned(self, version: ModelVersion) -> bool:
        """Whether it always resolves to the same bytes."""
        if version.source_uri:
            return external_weights.parse(version.source_uri).is_pinned
        return bool(version.sha256)

    @extend_schema_field(DeclarationSerializer)
    def get_declared(self, version: ModelVersion) -> Any:
        return declarations.from_json(version.declared).to_json()

    def get_aliases(self, version: ModelVersion) -> list[str]:
        return [alias.name for alias in version.aliases.all()]


class VersionSerializer(ListedVersionSerializer):
    signature = serializers.SerializerMethodField()
    config_pbtxt = serializers.CharField()
    vram_least_mib = serializers.SerializerMethodField()

    def get_vram_least_mib(self, version: ModelVersion) -> int | None:
        """Lower bound of the estimate; null without an estimate."""
        return measurements.min_vram_mib(version)

    @extend_schema_field(SignatureSerializer(allow_null=True))
    def get_signature(self, version: ModelVersion) -> Any:
        """Null until it is read from the file."""
        return SignatureSerializer(version.signature).data if version.signature else None


class RegisterReferenceSerializer(Serializer):
    source_uri = serializers.CharField(
        max_length=500,
        help_text="hf://organisation/model:commit, pvc://claim/path or "
        "oci://registry/image:tag@sha256:digest; no credentials",
    )
    metadata = serializers.DictField(
        default=dict,
        help_text="as for an uploaded version; parameters_millions, dtype and context_length are "
        "used for sizing",
    )


class StartUploadSerializer(Serializer):
    filename = serializers.CharField(max_length=300)
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(default="", allow_blank=True, max_length=100)
    metadata = serializers.DictField(default=dict)
    head = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_HEAD_LENGTH,
        help_text="the first 4,096 bytes of the file in base64, to refuse an unsupported format before "
        "the upload; without it the file extension decides",
    )
    declared = DeclarationSerializer(required=False)
    part_checksums = serializers.BooleanField(
        default=False,
        help_text="send a SHA-256 with every part; S3 then rejects a part that does not match",
    )
    allow_duplicate = serializers.BooleanField(
        default=False, help_text="start even if a version already has the declared SHA-256"
    )

    def validate_head(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError as error:
            raise serializers.ValidationError("Send the bytes in base64.") from error


class StartedUploadSerializer(VersionSerializer):
    part_size = serializers.SerializerMethodField()
    part_count = serializers.SerializerMethodField()

    def get_part_size(self, version: ModelVersion) -> int:
        """Bytes of every part except the last."""
        return version.part_size_bytes

    def get_part_count(self, version: ModelVersion) -> int:
        return -(-version.declared_size_bytes // version.part_size_bytes)


class SignPartsSerializer(Serializer):
    numbers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MAX_PARTS),
        min_length=1,
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


class PartUrlSerializer(Serializer):
    number = serializers.IntegerField()
    url = serializers.CharField(help_text="for one PUT of exactly size_bytes")
    size_bytes = serializers.IntegerField()
    headers = serializers.DictField(
        child=serializers.CharField(), help_text="send these with the PUT; they are signed"
    )


class StoredPartSerializer(Serializer):
    number = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class PartsSerializer(Serializer):
    part_size = serializers.IntegerField(source="plan.part_bytes")
    part_count = serializers.IntegerField(source="plan.count")
    stored = StoredPartSerializer(many=True)
    missing = serializers.ListField(
        child=serializers.IntegerField(), help_text="parts that still have to be sent"
    )


class DescribeVersionSerializer(Serializer):
    metadata = serializers.DictField(help_text="replaces all metadata")


class ReasonSerializer(Serializer):
    reason = serializers.CharField(default="", allow_blank=True, max_length=2000)


class ReleaseSerializer(Serializer):
    reason = serializers.CharField(max_length=2000, allow_blank=True)
    days = serializers.IntegerField(default=30)


class MoveAliasSerializer(Serializer):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    is_protected = serializers.BooleanField(
        allow_null=True, default=None, help_text="null keeps the current value"
    )
