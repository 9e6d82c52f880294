"""Fleet actions in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.actions.domain.drain_settings import DEFAULT_MINUTES, FEWEST_MINUTES, MOST_MINUTES
from fleet.actions.domain.kinds import ActionKind, TargetKind
from fleet.actions.domain.pool_settings import CAPACITY_TYPES, POLICIES
from fleet.actions.domain.states import ActionState
from fleet.actions.services.node_groups import MOST_NODES
from portal.api.base_serializer import HIGHEST_INTEGER, Serializer, choice_of, dollars


class ActionCommentSerializer(Serializer):
    comment = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class ActionReasonSerializer(Serializer):
    reason = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class DrainSerializer(ActionCommentSerializer):
    deadline_minutes = serializers.IntegerField(
        default=DEFAULT_MINUTES,
        min_value=FEWEST_MINUTES,
        max_value=MOST_MINUTES,
        help_text="Minutes from its start. It fails if pods remain then.",
    )
    evict_unmanaged = serializers.BooleanField(
        default=False, help_text="Evict pods that no controller starts again too."
    )


class MigLayoutSerializer(DrainSerializer):
    layout = serializers.CharField(
        max_length=63,
        help_text="Layout of the MIG manager's default configuration: all-1g.10gb, all-balanced, …",
    )


class GpuSharingSerializer(DrainSerializer):
    config = serializers.CharField(
        max_length=63, help_text="a key of the ConfigMap that the node's device plugin reads"
    )


class ApproveActionSerializer(ActionCommentSerializer):
    evidence_hash = serializers.CharField(
        max_length=64, help_text="Hash of the evidence that the approver has seen."
    )


class FieldChangeSerializer(Serializer):
    """A field that the action changes, before and after."""

    field = serializers.CharField(source="label")
    before = serializers.CharField()
    after = serializers.CharField()


class AffectedSerializer(Serializer):
    """Pods of one deployment; without names for who is not in its team."""

    team_slug = serializers.CharField()
    deployment = serializers.CharField()
    namespace = serializers.CharField()
    pods = serializers.IntegerField()
    gpus = serializers.IntegerField()
    without_room = serializers.IntegerField(help_text="pods that fit on no other node now")


class HeldBudgetSerializer(Serializer):
    """A disruption budget that does not let its pods be evicted now."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    pods = serializers.IntegerField()
    hold = serializers.CharField()


class ActionEvidenceSerializer(Serializer):
    """The effects of an action as they were shown to the requester and the approver."""

    changes = FieldChangeSerializer(many=True)
    deployments = AffectedSerializer(many=True)
    budgets = HeldBudgetSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    usd_per_hour_before = dollars(allow_null=True)
    usd_per_hour_after = dollars(allow_null=True)
    usd_per_month_change = dollars(allow_null=True, help_text="730 hours")
    yaml_before = serializers.CharField()
    yaml_after = serializers.CharField()


class FleetActionSerializer(Serializer):
    """An action on the fleet. While it runs, `state_reason` says how far it is."""

    id = serializers.IntegerField()
    kind = choice_of(ActionKind)
    cluster = serializers.CharField(source="cluster.name")
    target_kind = choice_of(TargetKind)
    target = serializers.CharField()
    node_id = serializers.IntegerField(allow_null=True)
    parameters = serializers.DictField(
        help_text="Parameters as requested. The keys depend on the kind."
    )
    comment = serializers.CharField()
    requester = serializers.CharField(source="requester.username")
    state = choice_of(ActionState)
    state_reason = serializers.CharField(
        help_text="Reason of the state. Of a running action, its progress."
    )
    decided_by = serializers.CharField(source="decided_by.username", default=None, allow_null=True)
    decision_comment = serializers.CharField()
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    deadline_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class FleetActionDetailsSerializer(FleetActionSerializer):
    """An action on the fleet with its evidence. An approval names `evidence_hash`."""

    evidence = ActionEvidenceSerializer(help_text="Evidence that the request showed.")
    evidence_hash = serializers.CharField()
    why_not_decide = serializers.CharField(help_text="Empty if you may approve or reject it.")


class ActionFilterSerializer(Serializer):
    state = choice_of(ActionState, required=False)
    cluster = serializers.IntegerField(required=False, min_value=1, max_value=HIGHEST_INTEGER)


class PoolSettingsSerializer(ActionCommentSerializer):
    instance_types = serializers.ListField(
        child=serializers.CharField(max_length=60),
        max_length=40,
        default=list,
        help_text="Empty means the pool keeps how it chooses types.",
    )
    capacity_types = serializers.ListField(
        child=serializers.ChoiceField(choices=list(CAPACITY_TYPES)),
        default=("on-demand",),  # type: ignore[arg-type]  # a list would be that of every request
    )
    gpu_limit = serializers.IntegerField(
        default=None,
        allow_null=True,
        min_value=0,
        max_value=10_000,
        help_text="Null means no limit.",
    )
    taints = serializers.ListField(
        child=serializers.CharField(max_length=200),
        max_length=20,
        default=list,
        help_text="key=value:Effect",
    )
    consolidation = serializers.ChoiceField(choices=list(POLICIES), default="WhenEmpty")
    consolidate_after = serializers.CharField(default="5m", max_length=20)


class NewPoolSerializer(PoolSettingsSerializer):
    name = serializers.CharField(max_length=63)
    node_class = serializers.CharField(
        max_length=63, help_text="an EC2NodeClass of the cluster, or a NodeClass of EKS Auto Mode"
    )


class RequirementSerializer(Serializer):
    key = serializers.CharField()
    operator = serializers.CharField()
    values = serializers.ListField(child=serializers.CharField())


class NodePoolSerializer(Serializer):
    name = serializers.CharField(source="pool.name")
    requirements = RequirementSerializer(source="pool.requirements", many=True)
    gpu_limit = serializers.IntegerField(source="pool.gpu_limit", allow_null=True)
    gpus = serializers.IntegerField(source="pool.gpus", help_text="GPUs of its nodes now.")
    nodes = serializers.IntegerField()
    is_ready = serializers.BooleanField(source="pool.is_ready")


class GroupSizeSerializer(ActionCommentSerializer):
    min_size = serializers.IntegerField(min_value=0, max_value=MOST_NODES)
    max_size = serializers.IntegerField(min_value=1, max_value=MOST_NODES)
    desired_size = serializers.IntegerField(min_value=0, max_value=MOST_NODES)


class NodeGroupSerializer(Serializer):
    name = serializers.CharField()
    status = serializers.CharField(
        help_text="Status as AWS names it: ACTIVE, UPDATING, DEGRADED, …"
    )
    capacity_type = serializers.CharField()
    instance_types = serializers.ListField(child=serializers.CharField())
    min_size = serializers.IntegerField(source="size.min_size")
    max_size = serializers.IntegerField(source="size.max_size")
    desired_size = serializers.IntegerField(source="size.desired_size")
    issues = serializers.ListField(child=serializers.CharField())
