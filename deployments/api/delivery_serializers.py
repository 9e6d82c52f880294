"""Shapes of deployments, change requests and rollouts in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.api.approval_serializers import (
    EmergencyReviewSerializer,
    RequiredApprovalSerializer,
)
from deployments.api.plan_serializers import PlanSerializer, RolloutStepSerializer
from deployments.api.spec_serializers import ServingSpecSerializer
from deployments.domain.states import (
    ChangeKind,
    ChangeState,
    DeploymentState,
    Environment,
    RolloutPhase,
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


class PreflightCheckSerializer(Shape):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="null: not known")
    detail = serializers.CharField()
    fix = serializers.CharField()
    is_blocking = serializers.BooleanField()


class CostSerializer(Shape):
    per_hour = serializers.CharField(allow_null=True, help_text="US dollars; null: not known")
    month_min = serializers.CharField(allow_null=True)
    month_max = serializers.CharField(allow_null=True)
    budget = serializers.CharField(allow_null=True)
    spent = serializers.CharField(allow_null=True)
    forecast = serializers.CharField(allow_null=True)
    price_source = serializers.CharField()


class PreflightSerializer(Shape):
    can_submit = serializers.BooleanField()
    checks = PreflightCheckSerializer(many=True)
    cost = serializers.SerializerMethodField()
    url = serializers.CharField()
    manifests = serializers.CharField(help_text="YAML")
    evidence_hash = serializers.CharField()

    @extend_schema_field(CostSerializer)
    def get_cost(self, preflight: Any) -> dict[str, str | None]:
        cost: dict[str, str | None] = preflight.cost.to_json()
        return cost


class TurnedCheckSerializer(Shape):
    name = serializers.CharField()
    was = serializers.BooleanField(allow_null=True, help_text="at the request; null: not known")
    is_worse = serializers.BooleanField()
    now = PreflightCheckSerializer()


class RecheckSerializer(Shape):
    can_approve = serializers.BooleanField(help_text="false: approving would be refused")
    at = serializers.DateTimeField()
    checks = PreflightCheckSerializer(many=True)
    turned = TurnedCheckSerializer(many=True, help_text="what says something else than it did")


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


class GuardSerializer(Shape):
    guard = serializers.CharField()
    stable = serializers.CharField()
    candidate = serializers.CharField()
    limit = serializers.CharField()
    n = serializers.IntegerField(allow_null=True)
    verdict = serializers.CharField(help_text="pass, fail, not enough data")
    words = serializers.CharField()
    # DRF takes declared fields off the class, so this one does not hide Field.source.
    source = serializers.CharField(help_text="what measured it")  # type: ignore[assignment]
    statistic = serializers.CharField(help_text="what the sequential test says")
    query = serializers.CharField(help_text="what Prometheus was asked; empty for counters")
    measured_at = serializers.CharField(help_text="when Prometheus answered")


class StepStateSerializer(RolloutStepSerializer):
    index = serializers.IntegerField()
    state = serializers.CharField(help_text="done, current, ahead")


class RolloutSerializer(Shape):
    id = serializers.IntegerField(source="rollout.pk")
    deployment_id = serializers.IntegerField(source="rollout.deployment_id")
    change_id = serializers.IntegerField(source="rollout.change_id")
    phase = serializers.ChoiceField(
        choices=[phase.value for phase in RolloutPhase], source="rollout.phase"
    )
    phase_reason = serializers.CharField(source="rollout.phase_reason")
    stable = serializers.CharField(source="rollout.stable_revision.version.label")
    candidate = serializers.CharField(source="rollout.candidate_revision.version.label")
    step_index = serializers.IntegerField(source="rollout.step_index")
    steps = StepStateSerializer(many=True)
    plan = PlanSerializer(source="rollout.plan")
    requested_weight = serializers.IntegerField()
    observed_weight = serializers.IntegerField(allow_null=True)
    requested_mirror = serializers.IntegerField(
        help_text="percent of requests copied to a shadow; its weight stays 0 until it is promoted"
    )
    observed_mirror = serializers.IntegerField(allow_null=True)
    observed_share = serializers.FloatField(
        allow_null=True, help_text="of a shadow: copies for each request that stable answered"
    )
    share_low = serializers.FloatField(allow_null=True)
    share_high = serializers.FloatField(allow_null=True)
    stable_requests = serializers.IntegerField(allow_null=True)
    candidate_requests = serializers.IntegerField(allow_null=True)
    guards = GuardSerializer(many=True)
    soak_left_seconds = serializers.IntegerField(allow_null=True)
    earliest_finish_at = serializers.DateTimeField(allow_null=True)
    next_weight = serializers.IntegerField(
        allow_null=True, help_text="of a shadow the next mirrored percent, 100 after the last step"
    )
    is_promotable = serializers.BooleanField()
    promotable_reason = serializers.CharField()
    evidence_hash = serializers.CharField()
    evidence_at = serializers.DateTimeField(allow_null=True)
    may_promote = serializers.BooleanField()
    may_stop = serializers.BooleanField()
    is_final = serializers.BooleanField()
