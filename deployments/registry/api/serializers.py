"""Shapes of the registry's API."""

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
from portal.api.base_serializer import Serializer

_MOST_NUMBERS = 1000
# 4,096 bytes in base64.
LONGEST_HEAD: Final = 5464


class TensorSerializer(Serializer):
    name = serializers.CharField()
    dtype = serializers.CharField(help_text="Triton's, without TYPE_")
    dims = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="as in the file, with the batch dimension; -1 is any size",
    )


class SignatureSerializer(Serializer):
    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)
    max_batch_size = serializers.IntegerField(help_text="0: requests are never joined")
    batching = serializers.CharField(
        required=False, help_text="why requests are joined or not, and what to do about it"
    )
    largest_inputs = serializers.CharField(
        required=False, help_text="the sizes that GPU memory was estimated at"
    )
    opset = serializers.DictField(child=serializers.IntegerField(), required=False)
    parameter_count = serializers.IntegerField(required=False)
    producer = serializers.CharField(required=False)


class DeclarationSerializer(Serializer):
    """What nobody can read from the file."""

    takes_batches = serializers.BooleanField(
        default=None,
        allow_null=True,
        help_text="whether requests may be joined along the first dimension; counts where the trial "
        "at verification could not show it. false switches batching off",
    )
    largest_batch = serializers.IntegerField(
        default=DEFAULT_MAX_BATCH, help_text="items that Triton joins at most"
    )
    largest_inputs = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField(), max_length=100),
        default=dict,
        help_text="by input, all dimensions as in the file at their largest, -1 where left open: "
        "GPU memory is estimated at these",
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
    """A version in a list. Its signature and configuration, which can be long, are of one version."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="model.team.slug")
    model = serializers.CharField(source="model.name")
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=[state.value for state in VersionState])
    state_reason = serializers.CharField(help_text="why it is quarantined or failed, and the fix")
    deadline_at = serializers.DateTimeField(
        allow_null=True, help_text="when uploading, verifying, or a release from quarantine ends"
    )
    source_uri = serializers.CharField(
        help_text="of a version by reference, where its weights lie; empty for uploaded ones"
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
        allow_null=True, help_text="the most, at the largest declared sizes and batch"
    )
    declared = serializers.SerializerMethodField()
    aliases = serializers.SerializerMethodField()
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)

    def get_storage_uri(self, version: ModelVersion) -> str:
        """What serving reads; empty until it is laid out."""
        return version.storage_uri if version.repository_prefix or version.source_uri else ""

    def get_is_pinned(self, version: ModelVersion) -> bool:
        """Whether it can only ever stand for the same bytes."""
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
        """Where the range of the estimate begins; null where nothing was estimated."""
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
        help_text="as of an uploaded version; parameters_millions, dtype and context_length feed "
        "the sizing adviser",
    )


class StartUploadSerializer(Serializer):
    filename = serializers.CharField(max_length=300)
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(default="", allow_blank=True, max_length=100)
    metadata = serializers.DictField(default=dict)
    head = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=LONGEST_HEAD,
        help_text="the first 4,096 bytes of the file in base64: a file that is no model is then "
        "refused before anything is sent; without it the name must end like that of a model",
    )
    declared = DeclarationSerializer(required=False)
    part_checksums = serializers.BooleanField(
        default=False,
        help_text="promise a SHA-256 with every part; S3 then refuses one that does not match",
    )
    allow_duplicate = serializers.BooleanField(
        default=False, help_text="start even if the declared SHA-256 is already a version"
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
        """Bytes of every part but the last."""
        return version.part_size_bytes

    def get_part_count(self, version: ModelVersion) -> int:
        return -(-version.declared_size_bytes // version.part_size_bytes)


class SignPartsSerializer(Serializer):
    numbers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MOST_NUMBERS),
        min_length=1,
        max_length=_MOST_NUMBERS,
    )
    checksums = serializers.DictField(
        child=serializers.RegexField(r"^[A-Za-z0-9+/]{43}=$"),
        default=dict,
        help_text="base64 SHA-256 by part number; required when the upload promised them",
    )

    def validate_checksums(self, value: dict[str, str]) -> dict[int, str]:
        if not all(number.isascii() and number.isdigit() and len(number) < 5 for number in value):
            raise serializers.ValidationError("Name each checksum by its part number.")
        return {int(number): checksum for number, checksum in value.items()}


class PartUrlSerializer(Serializer):
    number = serializers.IntegerField()
    url = serializers.CharField(help_text="takes one PUT of exactly size_bytes")
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
        child=serializers.IntegerField(), help_text="what is still to be sent"
    )


class DescribeVersionSerializer(Serializer):
    metadata = serializers.DictField(help_text="replaces all that was stated")


class ReasonSerializer(Serializer):
    reason = serializers.CharField(default="", allow_blank=True, max_length=2000)


class ReleaseSerializer(Serializer):
    reason = serializers.CharField(max_length=2000, allow_blank=True)
    days = serializers.IntegerField(default=30)


class MoveAliasSerializer(Serializer):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    is_protected = serializers.BooleanField(
        allow_null=True, default=None, help_text="null keeps what it was"
    )
