"""Serializers of the registry's API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.models import ModelVersion
from deployments.registry.api.scan_serializers import ScannedVersionSerializer
from deployments.registry.domain import declarations, external_weights
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadOutcome
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH
from deployments.registry.selectors import versions
from deployments.registry.selectors.listed_versions import ListedVersion
from deployments.sizing.selectors import measurements
from deployments.states import ImportKind, VersionState
from portal.api.base_serializer import Serializer, choice_of


class TensorSerializer(Serializer):
    """An input or output of a model."""

    name = serializers.CharField()
    dtype = serializers.CharField(help_text="Triton's data type without TYPE_")
    dims = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Dimensions as in the file, with the batch dimension. -1 means dynamic.",
    )


class SignatureSerializer(Serializer):
    """The inputs and outputs of a model; `max_batch_size` 0 means no batching."""

    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)
    max_batch_size = serializers.IntegerField(help_text="0: no batching")
    batching = serializers.CharField(
        required=False, help_text="why batching is on or off, with the fix"
    )
    largest_inputs = serializers.CharField(
        required=False, help_text="the input sizes of the GPU memory estimate"
    )
    class_names = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=(
            "Class names of a forest that classifies, in the order of its scores. A single score is "
            "that of the second class."
        ),
    )
    declared_by_uploader = serializers.BooleanField(
        required=False, help_text="the file does not state inputs and outputs"
    )
    compute_capability = serializers.CharField(
        required=False,
        help_text="Compute capability of the GPU that a TensorRT plan was built for, as declared.",
    )
    opset = serializers.DictField(child=serializers.IntegerField(), required=False)
    parameter_count = serializers.IntegerField(required=False)
    producer = serializers.CharField(required=False)


class DeclarationSerializer(Serializer):
    """The uploader's declaration of what the file does not contain."""

    supports_batching = serializers.BooleanField(
        default=None,
        allow_null=True,
        help_text="whether the first dimension is a batch dimension; used if the trial run is "
        "inconclusive. false turns batching off",
    )
    max_batch_size = serializers.IntegerField(default=DEFAULT_MAX_BATCH, help_text="max batch size")
    largest_inputs = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField(), max_length=100),
        default=dict,
        help_text=(
            "Largest dimensions by input, in the order of the file; -1 if not declared. Used to "
            "estimate GPU memory."
        ),
    )
    inputs = TensorSerializer(
        many=True,
        default=list,
        help_text="Inputs of a file that does not state them: TorchScript, TensorRT.",
    )
    outputs = TensorSerializer(
        many=True,
        default=list,
        help_text="Outputs of a file that does not state them: TorchScript, TensorRT.",
    )
    compute_capability = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=10,
        help_text="Compute capability of the GPU that a TensorRT plan was built for, such as 8.6.",
    )


class CheckSerializer(Serializer):
    """A check of a version's verification; `ok` is null while it is unknown or was not tried."""

    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="Null if unknown yet, or not tried.")
    detail = serializers.CharField()


class AliasSerializer(Serializer):
    """A name that points to a version of a model."""

    name = serializers.CharField()
    version = serializers.IntegerField(source="version.number")
    is_protected = serializers.BooleanField()
    moved_at = serializers.DateTimeField()


class ModelSerializer(Serializer):
    """A model of a team."""

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
    team = serializers.CharField(source="team_slug")
    model = serializers.CharField(source="model_name")
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
    filename = serializers.CharField(help_text="the name of the file or folder")
    format = serializers.CharField()
    size_bytes = serializers.IntegerField(allow_null=True)
    declared_size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField(
        help_text=(
            "SHA-256 of the stored file; of several files, that of what sha256sum prints for them, "
            "sorted by path. Empty until verified."
        )
    )
    bucket = serializers.CharField()
    upload_prefix = serializers.CharField(
        help_text="Common prefix of the keys of the uploaded files."
    )
    storage_uri = serializers.SerializerMethodField()
    metadata = serializers.DictField(
        help_text="well-known texts; metrics and directions by name, labels by key"
    )
    checks = CheckSerializer(many=True)
    vram_estimate_mib = serializers.IntegerField(
        allow_null=True, help_text="upper bound, at the largest declared input sizes and batch"
    )
    declared = serializers.SerializerMethodField()
    aliases = serializers.ListField(
        child=serializers.CharField(), source="alias_names", read_only=True
    )
    created_by = serializers.CharField(source="creator")
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)

    def get_storage_uri(self, version: ListedVersion | ModelVersion) -> str:
        """The serving repository. Empty until it is created."""
        if version.source_uri:
            return version.source_uri
        prefix = version.repository_prefix
        return f"s3://{version.bucket}/{prefix}" if prefix else ""

    def get_is_pinned(self, version: ListedVersion | ModelVersion) -> bool:
        """Whether it always resolves to the same bytes."""
        if version.source_uri:
            return external_weights.is_pinned(version.source_uri)
        return bool(version.sha256)

    @extend_schema_field(DeclarationSerializer)
    def get_declared(self, version: ListedVersion | ModelVersion) -> Any:
        return declarations.show_declared(version.declared)


class OriginSerializer(Serializer):
    """The origin of an imported version."""

    import_id = serializers.IntegerField(source="pk")
    kind = choice_of(ImportKind)
    address = serializers.CharField(help_text="Address without credentials.")
    server = serializers.CharField(help_text="the MLflow server; empty for other kinds")
    pin = serializers.CharField(help_text="the commit or version that the address named")


class LoadTestSerializer(Serializer):
    outcome = choice_of(LoadOutcome)
    detail = serializers.CharField(help_text="Triton's message, unless it answered")
    load_seconds = serializers.FloatField()
    memory_mib = serializers.IntegerField(help_text="peak of all processes of Triton")
    first_ms = serializers.FloatField(help_text="latency of the first generated request")
    warm_ms = serializers.FloatField(help_text="median latency of five more")
    gpu_memory_mib = serializers.IntegerField(
        help_text="Memory of the GPU of its pod. 0 if not measured."
    )
    cluster = serializers.CharField(help_text="Place where it ran. Empty for the portal's CPU.")


class VersionSerializer(ListedVersionSerializer, ScannedVersionSerializer):
    """A version with its signature and configuration."""

    origin = serializers.SerializerMethodField()
    aliases = serializers.SerializerMethodField()  # type: ignore[assignment]  # of one version
    readme = serializers.CharField(help_text="Markdown")
    signature = serializers.SerializerMethodField()
    load_test = serializers.SerializerMethodField()
    config_pbtxt = serializers.CharField()
    vram_min_mib = serializers.SerializerMethodField()

    @extend_schema_field(OriginSerializer(allow_null=True))
    def get_origin(self, version: ModelVersion) -> Any:
        """The origin. Null for a version that was not imported."""
        if version.source_uri:
            return None
        job = getattr(version, "source_import", None)
        return None if job is None else OriginSerializer(job).data

    def get_aliases(self, version: ModelVersion) -> list[str]:
        return versions.list_alias_names(version)

    def get_vram_min_mib(self, version: ModelVersion) -> int | None:
        """The lower bound of the estimate. Null without an estimate."""
        return measurements.min_vram_mib(version)

    @extend_schema_field(LoadTestSerializer(allow_null=True))
    def get_load_test(self, version: ModelVersion) -> Any:
        """The result of loading the version in Triton before it was ready. Null without a result."""
        result = results.read_load_test(version.signature)
        return result and LoadTestSerializer(result.to_json()).data

    @extend_schema_field(SignatureSerializer(allow_null=True))
    def get_signature(self, version: ModelVersion) -> Any:
        """The signature. Null until it is read from the file."""
        return SignatureSerializer(version.signature).data if version.signature else None


class RegisterReferenceSerializer(Serializer):
    source_uri = serializers.CharField(
        max_length=500,
        help_text="hf://organisation/model:commit, pvc://claim/path or "
        "oci://registry/image:tag@sha256:digest; no credentials",
    )
    metadata = serializers.DictField(
        default=dict,
        help_text=(
            "Metadata as for an uploaded version. parameters_millions, dtype, context_length and "
            "kv_cache_kib_per_token are used for sizing."
        ),
    )
    readme = serializers.CharField(default="", allow_blank=True, help_text="Markdown")


class TypicalStartSerializer(Serializer):
    engine = serializers.CharField()
    model_cache = serializers.CharField()
    instance_type = serializers.CharField()
    starts = serializers.IntegerField(help_text="how many were measured, at most 20")
    seconds = serializers.IntegerField(help_text="median from the pod's creation until it is ready")
    steps = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="median seconds: node (waiting for one), image (and start of containers), download, "
        "compare (digests), load",
    )


class ReasonSerializer(Serializer):
    reason = serializers.CharField(default="", allow_blank=True, max_length=2000)


class ReleaseSerializer(Serializer):
    reason = serializers.CharField(max_length=2000, allow_blank=True)
    days = serializers.IntegerField(default=30)


class MoveAliasSerializer(Serializer):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    is_protected = serializers.BooleanField(
        allow_null=True, default=None, help_text="Null keeps the current value."
    )
