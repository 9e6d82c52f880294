"""Serializers of pipelines and of their change requests. The rules are in the domain."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.approvals.api.serializers import RequiredApprovalSerializer
from deployments.approvals.selectors import approvals as approval_selectors
from deployments.models import Approval, ChangeRequest, Pipeline
from deployments.pipelines.domain.observed import ObservedPipeline
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines, protected
from deployments.preflight.api.serializers import PreflightCheckSerializer
from deployments.states import ChangeState, Environment, PipelineChangeKind
from portal.api.base_serializer import Serializer, choice_of
from portal.api.definition_serializers import DefinedSerializer


class PipelineSpecSerializer(DefinedSerializer):
    definition = PipelineSpec


class PipelineDraftSerializer(PipelineSpecSerializer):
    team = serializers.CharField(max_length=63)
    cluster_id = serializers.IntegerField()
    name = serializers.CharField(max_length=100)
    environment = choice_of(Environment, default=Environment.PRODUCTION)


class NewPipelineSerializer(PipelineDraftSerializer):
    comment = serializers.CharField(default="", allow_blank=True)


class ChangedPipelineSerializer(PipelineSpecSerializer):
    comment = serializers.CharField(default="", allow_blank=True)


class PipelineFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)


class PipelineChangeFilterSerializer(Serializer):
    state = choice_of(ChangeState, default="", allow_blank=True)


class PipelineExaminedSerializer(Serializer):
    is_ok = serializers.BooleanField()
    checks = PreflightCheckSerializer(many=True)
    wrong = serializers.DictField(
        source="fields",
        child=serializers.CharField(),
        help_text="Problem by its place, such as nodes.0.steps.1.weight.",
    )
    yaml = serializers.CharField(
        help_text="Objects that approving would write. Empty after a refusal."
    )


class PipelineConditionSerializer(Serializer):
    type = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()


class PipelineObservedSerializer(Serializer):
    generation = serializers.IntegerField(source="observed_generation")
    at = serializers.DateTimeField(source="observed_at", allow_null=True)
    conditions = serializers.SerializerMethodField()
    reverted = serializers.SerializerMethodField(help_text="the last drift that was reverted")

    @extend_schema_field(PipelineConditionSerializer(many=True))
    def get_conditions(self, row: Pipeline) -> list[dict[str, str]]:
        return [
            asdict(condition) for condition in ObservedPipeline.from_json(row.observed).conditions
        ]

    def get_reverted(self, row: Pipeline) -> str:
        return ObservedPipeline.from_json(row.observed).reverted


class PipelineSerializer(serializers.ModelSerializer[Pipeline]):
    team = serializers.CharField(source="team.slug")
    cluster = serializers.CharField(source="cluster.name")
    url = serializers.SerializerMethodField(help_text="send requests to exactly this address")
    desired = serializers.SerializerMethodField(help_text="Null until it is approved.")
    observed = PipelineObservedSerializer(source="*")

    class Meta:
        model = Pipeline
        fields = [
            "id",
            "team",
            "name",
            "cluster",
            "environment",
            "url",
            "state",
            "state_reason",
            "desired_generation",
            "is_stopped",
            "is_retiring",
            "is_retired",
            "desired",
            "observed",
            "created_at",
        ]

    def get_url(self, row: Pipeline) -> str:
        return pipelines.url_of(row)

    @extend_schema_field(PipelineSpecSerializer(allow_null=True))
    def get_desired(self, row: Pipeline) -> dict[str, Any] | None:
        return _body_of(row.spec)


class PipelineApprovalSerializer(serializers.ModelSerializer[Approval]):
    user = serializers.CharField(source="user.username")

    class Meta:
        model = Approval
        fields = ["user", "is_approved", "as_role", "comment", "at", "expires_at", "void_reason"]


class PipelineChangeSerializer(serializers.ModelSerializer[ChangeRequest]):
    pipeline_id = serializers.IntegerField()
    pipeline = serializers.CharField(source="pipeline.name")
    team = serializers.CharField(source="team.slug")
    kind = choice_of(PipelineChangeKind)
    state = choice_of(ChangeState)
    requester = serializers.CharField(source="requester.username")
    desired = serializers.SerializerMethodField(help_text="Null for a retirement.")
    evidence_hash = serializers.CharField(max_length=64)
    approvals = PipelineApprovalSerializer(many=True)
    required_approvals = serializers.SerializerMethodField()
    opens_address = serializers.SerializerMethodField(
        help_text="whether callers get answers that they did not get before; nobody needs a key for a pipeline"
    )

    class Meta:
        model = ChangeRequest
        fields = [
            "id",
            "pipeline_id",
            "pipeline",
            "team",
            "kind",
            "state",
            "state_reason",
            "requester",
            "comment",
            "desired",
            "opens_address",
            "required_approvals",
            "approvals",
            "evidence_hash",
            "created_at",
            "deadline_at",
            "finished_at",
        ]

    @extend_schema_field(PipelineSpecSerializer(allow_null=True))
    def get_desired(self, row: ChangeRequest) -> dict[str, Any] | None:
        return _body_of(row.pipeline_spec)

    @extend_schema_field(RequiredApprovalSerializer(many=True))
    def get_required_approvals(self, row: ChangeRequest) -> Any:
        rows = approval_selectors.status_of(row).rows
        return RequiredApprovalSerializer(rows, many=True).data

    def get_opens_address(self, row: ChangeRequest) -> bool:
        return protected.is_opening(row)


def _body_of(spec: dict[str, Any]) -> dict[str, Any] | None:
    return PipelineSpecSerializer(spec).data if spec else None
