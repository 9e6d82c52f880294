"""Shapes of deployments and change requests in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.api.approval_serializers import (
    EmergencyReviewSerializer,
    RequiredApprovalSerializer,
)
from deployments.api.plan_serializers import PlanSerializer, RolloutStepSerializer
from deployments.api.preflight_serializers import PreflightCheckSerializer
from deployments.api.spec_serializers import ServingSpecSerializer
from deployments.domain.states import (
    ChangeKind,
    ChangeState,
    DeploymentState,
    Environment,
)
from deployments.models import Approval, ChangeRequest, Deployment, Revision, Rollout
from deployments.selectors import approvals as approval_selectors
from deployments.selectors import deployments as deployment_selectors

Shape = serializers.Serializer[Any]


class DraftSerializer(Shape):
    version_id = serializers.IntegerField()
    cluster_id = serializers.IntegerField()
    name = serializers.CharField(max_length=100)
    environment = serializers.ChoiceField(
        choices=[one.value for one in Environment],
        default=Environment.PRODUCTION,
        help_text="never changes afterwards; rules of approval differ by it",
    )
    spec = ServingSpecSerializer()


class NewDeploymentSerializer(DraftSerializer):
    comment = serializers.CharField(default="", allow_blank=True)


class NewChangeSerializer(Shape):
    """One of canary (version_id, steps, plan, spec), roll_back (revision_number), scale
    (min_replicas, max_replicas), start, retire.
    """

    kind = serializers.ChoiceField(
        choices=[
            ChangeKind.CANARY,
            ChangeKind.ROLL_BACK,
            ChangeKind.SCALE,
            ChangeKind.START,
            ChangeKind.RETIRE,
        ]
    )
    comment = serializers.CharField(default="", allow_blank=True)
    version_id = serializers.IntegerField(required=False)
    steps = RolloutStepSerializer(many=True, required=False)
    plan = PlanSerializer(required=False, help_text="left out: a canary with the default guards")
    spec = ServingSpecSerializer(required=False, help_text="left out: as the stable revision")
    revision_number = serializers.IntegerField(required=False)
    min_replicas = serializers.IntegerField(required=False)
    max_replicas = serializers.IntegerField(required=False)


class CommentSerializer(Shape):
    comment = serializers.CharField(default="", allow_blank=True)


class DecisionSerializer(CommentSerializer):
    evidence_hash = serializers.CharField(max_length=64, help_text="of what was shown")


class EvidenceSerializer(Shape):
    evidence_hash = serializers.CharField(max_length=64, help_text="of the rollout as shown")


class StopReasonSerializer(Shape):
    reason = serializers.CharField(default="", allow_blank=True)


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    version = serializers.CharField(source="version.label")
    spec = ServingSpecSerializer()

    class Meta:
        model = Revision
        fields = ["number", "version", "version_id", "workload_name", "spec", "created_at"]


class DesiredSerializer(Shape):
    generation = serializers.IntegerField(source="desired_generation")
    stable = RevisionSerializer(source="stable_revision", allow_null=True)
    candidate = RevisionSerializer(source="candidate_revision", allow_null=True)
    candidate_weight = serializers.IntegerField()
    candidate_mirror = serializers.IntegerField(
        help_text="percent of requests that are copied to a shadow, its answers dropped"
    )
    is_stopped = serializers.BooleanField()
    is_retiring = serializers.BooleanField()
    scale = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="replicas approved since the revision was made; empty: as its spec says",
    )


class ObservedSerializer(Shape):
    generation = serializers.IntegerField(source="observed_generation")
    at = serializers.DateTimeField(source="observed_at", allow_null=True)
    candidate_weight = serializers.IntegerField(
        source="observed_weight", allow_null=True, help_text="null: not known, or no candidate"
    )
    candidate_mirror = serializers.IntegerField(
        source="observed_mirror", allow_null=True, help_text="null: not known, or no candidate"
    )
    revisions = serializers.DictField(
        source="observed", help_text="by revision: stage, ready, reason, message, weight, since"
    )


class DeploymentSerializer(serializers.ModelSerializer[Deployment]):
    team = serializers.CharField(source="team.slug")
    cluster = serializers.CharField(source="cluster.name")
    environment = serializers.ChoiceField(choices=[one.value for one in Environment])
    state = serializers.ChoiceField(choices=[state.value for state in DeploymentState])
    url = serializers.SerializerMethodField()
    is_current = serializers.SerializerMethodField(
        help_text="whether the cluster was seen after the last change of what is wanted"
    )
    desired = DesiredSerializer(source="*")
    observed = ObservedSerializer(source="*")
    rollout_id = serializers.SerializerMethodField(help_text="of the open rollout, if any")

    class Meta:
        model = Deployment
        fields = [
            "id",
            "team",
            "name",
            "cluster",
            "namespace",
            "environment",
            "url",
            "state",
            "state_reason",
            "is_current",
            "desired",
            "observed",
            "rollout_id",
            "created_at",
            "first_ready_at",
        ]

    def get_url(self, deployment: Deployment) -> str:
        return deployment_selectors.url_of(deployment)

    def get_is_current(self, deployment: Deployment) -> bool:
        return deployment_selectors.is_current(deployment)

    def get_rollout_id(self, deployment: Deployment) -> int | None:
        found: list[Rollout] = getattr(deployment, "open_rollouts", [])
        return found[0].pk if found else None


class DeploymentEventSerializer(Shape):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    message = serializers.CharField()
    revision_number = serializers.IntegerField(allow_null=True)
    actor_name = serializers.CharField(help_text="empty: the portal itself")


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    user = serializers.CharField(source="user.username")
    as_role = serializers.CharField(help_text="lead, admin, delegate or named")
    stands_for = serializers.CharField(
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
            "stands_for",
            "is_emergency",
            "comment",
            "evidence_hash",
            "at",
            "expires_at",
            "void_reason",
        ]


class ChangeSerializer(serializers.ModelSerializer[ChangeRequest]):
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChangeKind])
    state = serializers.ChoiceField(choices=[state.value for state in ChangeState])
    team = serializers.CharField(source="deployment.team.slug")
    deployment = serializers.CharField(source="deployment.name")
    requester = serializers.CharField(source="requester.username")
    revision = RevisionSerializer(allow_null=True)
    steps = RolloutStepSerializer(many=True)
    plan = PlanSerializer()
    checks = PreflightCheckSerializer(many=True)
    cost = serializers.DictField(child=serializers.CharField(allow_null=True))
    environment = serializers.CharField(source="deployment.environment")
    scale = serializers.DictField(child=serializers.IntegerField())
    required_approvals = serializers.SerializerMethodField()
    approval_words = serializers.SerializerMethodField(
        help_text="what is given and what is missing"
    )
    approvals = ApprovalSerializer(many=True)
    emergency_review = EmergencyReviewSerializer(default=None, allow_null=True)

    def get_approval_words(self, change: ChangeRequest) -> str:
        return approval_selectors.standing_of(change).words

    @extend_schema_field(RequiredApprovalSerializer(many=True))
    def get_required_approvals(self, change: ChangeRequest) -> Any:
        rows = approval_selectors.standing_of(change).rows
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
            "environment",
            "requester",
            "comment",
            "revision",
            "steps",
            "plan",
            "checks",
            "cost",
            "scale",
            "evidence_hash",
            "required_approvals",
            "approval_words",
            "approvals",
            "emergency_review",
            "created_at",
            "submitted_at",
            "deadline_at",
            "finished_at",
        ]
