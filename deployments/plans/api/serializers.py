"""Shapes of a rollout plan in the API: steps, kind, guards, analysis."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from deployments.domain import query_guards
from deployments.domain.guards import Metric
from deployments.domain.percentile_guards import QUANTILES
from deployments.domain.rollout_plans import PlanKind

Shape = serializers.Serializer[Any]


class RolloutStepSerializer(Shape):
    weight = serializers.IntegerField(
        help_text="percent of requests that go to the candidate; of a shadow: that are mirrored to it"
    )
    soak_seconds = serializers.IntegerField()
    min_requests = serializers.IntegerField()
    auto_promote = serializers.BooleanField(
        default=False, help_text="promoted without asking again when all guards pass"
    )
    deadline_seconds = serializers.IntegerField(
        default=None, allow_null=True, help_text="aborted when not promoted by then"
    )


class GuardLimitSerializer(Shape):
    metric = serializers.ChoiceField(
        choices=[*(metric.value for metric in Metric), *QUANTILES, query_guards.METRIC]
    )
    max = serializers.FloatField(required=False, allow_null=True, help_text="in the metric's unit")
    max_ratio = serializers.FloatField(
        required=False, allow_null=True, help_text="of the stable revision's"
    )
    ignore_below = serializers.FloatField(
        required=False, allow_null=True, help_text="below this max_ratio does not count"
    )
    name = serializers.CharField(
        required=False, max_length=40, help_text="of a promql guard: each its own"
    )
    query = serializers.CharField(
        required=False,
        max_length=1000,
        help_text="of a promql guard: gives one number; may hold "
        f"{', '.join('$' + name for name in query_guards.PLACEHOLDERS)}",
    )
    min = serializers.FloatField(
        required=False, allow_null=True, help_text="of a promql guard, beside max or instead of it"
    )
    breaches = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="of a promql guard: so many in a row fail it; left out: 3",
    )


class AnalysisSerializer(Shape):
    alpha = serializers.FloatField(
        default=0.01, help_text="share of good candidates that may be aborted by chance"
    )
    is_strict = serializers.BooleanField(
        default=False, help_text="a guard passes only when the candidate is shown to be within it"
    )


class PlanSerializer(Shape):
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
