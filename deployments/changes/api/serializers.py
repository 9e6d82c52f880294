"""Serializers of deployments' change requests in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.approvals.api.serializers import (
    EmergencyReviewSerializer,
    RequiredApprovalSerializer,
)
from deployments.approvals.selectors import approvals as approval_selectors
from deployments.changes.selectors import address_access
from deployments.models import Approval, ChangeRequest, RequestComment
from deployments.plans.api.serializers import PlanSerializer, RolloutStepSerializer
from deployments.preflight.api.serializers import PreflightCheckSerializer
from deployments.serving.api.serializers import RevisionSerializer
from deployments.spec.api.serializers import ServingSpecSerializer
from deployments.states import ChangeKind, ChangeState, Environment
from portal.api.base_serializer import Serializer, choice_of


class DraftSerializer(Serializer):
    version_id = serializers.IntegerField()
    cluster_id = serializers.IntegerField()
    name = serializers.CharField(max_length=100)
    environment = choice_of(
        Environment,
        default=Environment.PRODUCTION,
        help_text="cannot be changed later; sets the approval rules",
    )
    preset_id = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="a preset of the platform or of the version's team: what spec leaves out has its values, "
        "and spec may be {}",
    )
    spec = ServingSpecSerializer()
    replaces_id = serializers.IntegerField(
        default=None,
        allow_null=True,
        help_text="edit and resubmit: the ID of your own request of a deployment that waits, was rejected or "
        "expired. This one takes its place and may have its name; a request that waits is withdrawn.",
    )


class NewDeploymentSerializer(DraftSerializer):
    comment = serializers.CharField(default="", allow_blank=True)


class NewChangeSerializer(Serializer):
    """A requested change, which is one of: canary (version_id, steps, plan, spec), roll_back (revision_number),
    scale (min_replicas, max_replicas), stop, start, retire.
    """

    kind = serializers.ChoiceField(
        choices=[
            ChangeKind.CANARY,
            ChangeKind.ROLL_BACK,
            ChangeKind.SCALE,
            ChangeKind.STOP,
            ChangeKind.START,
            ChangeKind.RETIRE,
        ]
    )
    comment = serializers.CharField(default="", allow_blank=True)
    version_id = serializers.IntegerField(required=False)
    steps = RolloutStepSerializer(many=True, required=False)
    plan = PlanSerializer(required=False, help_text="omitted: a canary with the default guards")
    spec = ServingSpecSerializer(
        required=False,
        help_text="omitted: as the stable revision; network.access omitted: as there, too",
    )
    revision_number = serializers.IntegerField(required=False)
    min_replicas = serializers.IntegerField(required=False)
    max_replicas = serializers.IntegerField(required=False)


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    user = serializers.CharField(source="user.username")
    as_role = serializers.CharField(help_text="lead, admin, delegate or named")
    on_behalf_of = serializers.CharField(
        source="stands_for.username",
        default=None,
        allow_null=True,
        help_text="the lead of a delegate",
    )

    class Meta:
        model = Approval
        fields = [
            "user",
            "is_approved",
            "as_role",
            "on_behalf_of",
            "is_emergency",
            "comment",
            "evidence_hash",
            "at",
            "expires_at",
            "void_reason",
        ]


class NewRequestCommentSerializer(Serializer):
    text = serializers.CharField(allow_blank=True, help_text="at most 2,000 characters")


class RequestCommentSerializer(serializers.ModelSerializer[RequestComment]):
    author = serializers.CharField(source="author.username")

    class Meta:
        model = RequestComment
        fields = ["id", "author", "text", "at"]


class ChangeSerializer(serializers.ModelSerializer[ChangeRequest]):
    """A change request with what its decision depends on."""

    kind = choice_of(ChangeKind)
    state = choice_of(ChangeState)
    team = serializers.CharField(source="team.slug")
    deployment = serializers.CharField(source="deployment.name")
    deployment_id = serializers.IntegerField(read_only=True)
    cluster_id = serializers.IntegerField(source="deployment.cluster_id")
    replaces_id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="ID of the request that this one replaces"
    )
    requester = serializers.CharField(source="requester.username")
    revision = RevisionSerializer(allow_null=True)
    steps = RolloutStepSerializer(many=True)
    plan = PlanSerializer()
    checks = PreflightCheckSerializer(many=True)
    cost = serializers.DictField(child=serializers.CharField(allow_null=True))
    environment = serializers.CharField(source="deployment.environment")
    access = serializers.SerializerMethodField(
        help_text="who can call the address afterwards: open (anyone who reaches the gateway) or "
        "keys (callers with a key); empty for a change that brings no revision"
    )
    opens_address = serializers.SerializerMethodField(
        help_text="whether callers without a key get answers that they did not get before"
    )
    scale = serializers.DictField(
        help_text="Revision, min_replicas, max_replicas, scaling and network after a change of replicas. "
        "Empty for other changes."
    )
    required_approvals = serializers.SerializerMethodField()
    approval_status = serializers.SerializerMethodField(help_text="approvals given and missing")
    approvals = ApprovalSerializer(many=True)
    emergency_review = EmergencyReviewSerializer(default=None, allow_null=True)
    promotion = serializers.DictField(
        help_text="Evidence of this version from the environment before: deployment, revision, whether its "
        "rollout is finished, golden requests. The approval binds to it. Empty if there is none."
    )
    decided = serializers.DictField(
        help_text="Evidence shown when it was decided: checks, cost, diff, guards, manifests, metadata, names, "
        "and the approval status. Empty until then."
    )

    def get_access(self, change: ChangeRequest) -> str:
        return address_access.name_access(change)

    def get_opens_address(self, change: ChangeRequest) -> bool:
        return address_access.is_opening(change)

    def get_approval_status(self, change: ChangeRequest) -> str:
        return approval_selectors.status_of(change).description

    @extend_schema_field(RequiredApprovalSerializer(many=True))
    def get_required_approvals(self, change: ChangeRequest) -> Any:
        rows = approval_selectors.status_of(change).rows
        return RequiredApprovalSerializer(rows, many=True).data

    class Meta:
        model = ChangeRequest
        fields = [
            "id",
            "kind",
            "state",
            "state_reason",
            "team",
            "deployment",
            "deployment_id",
            "cluster_id",
            "environment",
            "access",
            "opens_address",
            "requester",
            "replaces_id",
            "comment",
            "revision",
            "steps",
            "plan",
            "checks",
            "cost",
            "scale",
            "promotion",
            "evidence_hash",
            "required_approvals",
            "approval_status",
            "approvals",
            "emergency_review",
            "decided",
            "created_at",
            "submitted_at",
            "deadline_at",
            "finished_at",
        ]


class ListedChangeSerializer(ChangeSerializer):
    """A change request in a list, without what was shown when it was decided, which is large."""

    decided: Any = None

    class Meta(ChangeSerializer.Meta):
        fields = [name for name in ChangeSerializer.Meta.fields if name != "decided"]
