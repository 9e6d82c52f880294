"""Serializers of rollouts and their evidence."""

from __future__ import annotations

from rest_framework import serializers

from deployments.approvals.api.serializers import CommentSerializer
from deployments.plans.api.serializers import PlanSerializer, RolloutStepSerializer
from deployments.states import RolloutPhase
from portal.api.base_serializer import Serializer, choice_of


class GuardSerializer(Serializer):
    """A guard's last result in a rollout."""

    guard = serializers.CharField()
    stable = serializers.CharField()
    candidate = serializers.CharField()
    limit = serializers.CharField()
    n = serializers.IntegerField(allow_null=True)
    verdict = serializers.CharField(
        help_text="pass, fail, not enough data, not known, not comparable"
    )
    message = serializers.CharField()
    # DRF takes declared fields off the class, so this one does not hide Field.source.
    source = serializers.CharField(help_text="Source of the measurement.")  # type: ignore[assignment]  # see above
    statistic = serializers.CharField(help_text="result of the sequential test")
    query = serializers.CharField(help_text="PromQL query; empty for counters")
    measured_at = serializers.CharField(help_text="when Prometheus returned the value")
    is_dry_run = serializers.BooleanField(help_text="judged and shown, but it decides nothing")


class StepStateSerializer(RolloutStepSerializer):
    """A step of a rollout and its state."""

    index = serializers.IntegerField()
    state = serializers.CharField(
        help_text="done, current, ahead, left (before its end) or skipped"
    )


class RolloutSerializer(Serializer):
    """A rollout. A promotion confirms its `evidence_hash`."""

    id = serializers.IntegerField(source="rollout.pk")
    deployment_id = serializers.IntegerField(source="rollout.deployment_id")
    change_id = serializers.IntegerField(source="rollout.change_id")
    phase = choice_of(RolloutPhase, source="rollout.phase")
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
        allow_null=True, help_text="Copies for each request that stable answered, of a shadow."
    )
    share_low = serializers.FloatField(allow_null=True)
    share_high = serializers.FloatField(allow_null=True)
    stable_requests = serializers.IntegerField(allow_null=True)
    candidate_requests = serializers.IntegerField(allow_null=True)
    guards = GuardSerializer(many=True)
    soak_left_seconds = serializers.IntegerField(allow_null=True)
    earliest_finish_at = serializers.DateTimeField(allow_null=True)
    next_weight = serializers.IntegerField(
        allow_null=True,
        help_text="Next weight in percent; for a shadow the next mirrored percent, 100 after the last step.",
    )
    is_promotable = serializers.BooleanField()
    promotable_reason = serializers.CharField()
    watch_until = serializers.DateTimeField(
        source="rollout.watch_until",
        allow_null=True,
        help_text="until then a failure rolls back to the old revision, which is still warm",
    )
    evidence_hash = serializers.CharField()
    evidence_at = serializers.DateTimeField(allow_null=True)
    can_promote = serializers.BooleanField()
    can_stop = serializers.BooleanField()
    is_final = serializers.BooleanField()


class PromoteSerializer(CommentSerializer):
    evidence_hash = serializers.CharField(max_length=64, help_text="Hash of the rollout as shown.")
