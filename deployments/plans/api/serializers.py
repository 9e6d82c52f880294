"""Shapes of a rollout plan in the API: steps, kind, guards, analysis."""

from __future__ import annotations

from rest_framework import serializers

from deployments.guards.domain import promql
from deployments.guards.domain.limits import Metric
from deployments.guards.domain.percentiles import QUANTILES
from deployments.plans.domain.rollout_plan import PlanKind
from portal.api.base_serializer import Serializer


class RolloutStepSerializer(Serializer):
    weight = serializers.IntegerField(
        help_text="percent of requests routed to the candidate; for a shadow: mirrored to it"
    )
    soak_seconds = serializers.IntegerField()
    min_requests = serializers.IntegerField()
    auto_promote = serializers.BooleanField(
        default=False, help_text="promoted automatically when all guards pass"
    )
    deadline_seconds = serializers.IntegerField(
        default=None,
        allow_null=True,
        help_text=("the rollout is aborted if the step is not promoted by then"),
    )


class GuardLimitSerializer(Serializer):
    metric = serializers.ChoiceField(
        choices=[*(metric.value for metric in Metric), *QUANTILES, promql.METRIC]
    )
    max = serializers.FloatField(required=False, allow_null=True, help_text="in the metric's unit")
    max_ratio = serializers.FloatField(
        required=False, allow_null=True, help_text="relative to the stable revision"
    )
    ignore_below = serializers.FloatField(
        required=False, allow_null=True, help_text="max_ratio is ignored below this value"
    )
    name = serializers.CharField(
        required=False, max_length=40, help_text="of a promql guard; unique"
    )
    query = serializers.CharField(
        required=False,
        max_length=1000,
        help_text="of a promql guard: returns one number; may contain "
        f"{', '.join('$' + name for name in promql.PLACEHOLDERS)}",
    )
    min = serializers.FloatField(
        required=False, allow_null=True, help_text="of a promql guard; with or without max"
    )
    breaches = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="of a promql guard: consecutive breaches before it fails; default 3",
    )


class AnalysisSerializer(Serializer):
    alpha = serializers.FloatField(
        default=0.01, help_text="probability of aborting a good candidate by chance"
    )
    is_strict = serializers.BooleanField(
        default=False,
        help_text=("a guard passes only when the candidate is proven to be within the limit"),
    )


class PlanSerializer(Serializer):
    """Left out parts have their defaults. Blue/green has one dark step of weight 0, or no steps. A
    shadow mirrors requests and drops the candidate's answers; it needs a gateway that can.
    """

    kind = serializers.ChoiceField(choices=[kind.value for kind in PlanKind], required=False)
    guards = GuardLimitSerializer(many=True, required=False)
    analysis = AnalysisSerializer(required=False)
    quality = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        required=False,
        help_text="limits of label_drift, output_length, structured_failures, embedding_drift and "
        "disagreement, 0 to 1; null switches one off",
    )
    move_alias = serializers.CharField(required=False, allow_blank=True, max_length=60)
    drain_seconds = serializers.IntegerField(required=False)
