"""The duration and cost of a rollout plan, before it is requested."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.changes.services import plan_figures
from deployments.plans.api.serializers import PlanSerializer, RolloutStepSerializer
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM


class PlannedRolloutSerializer(Serializer):
    steps = RolloutStepSerializer(many=True)
    plan = PlanSerializer(required=False)


class StepFigureSerializer(Serializer):
    weight = serializers.IntegerField()
    seconds = serializers.IntegerField(
        allow_null=True,
        help_text="Null if the step depends on requests and the request rate is unknown or zero.",
    )
    waiting_for = serializers.CharField(
        allow_blank=True, help_text="Condition that the step waits for longest."
    )
    replicas = serializers.IntegerField(
        help_text="Replicas of the candidate at the step's share of requests."
    )
    smallest_regression = serializers.FloatField(
        source="detection.times",
        default=None,
        allow_null=True,
        help_text="how many times stable's errors the step finds, by the traffic of the last day; "
        "null: not even a hundred times, or not known",
    )
    detection_seconds = serializers.IntegerField(
        source="detection.seconds", default=None, allow_null=True, help_text="how soon"
    )


class LatencyDetectionSerializer(Serializer):
    block_seconds = serializers.FloatField(
        help_text="how long a block is in which latency is compared, by what stable's last hour asks for and the requests of now"
    )
    seconds = serializers.IntegerField(
        help_text="how long the candidate must be slower before it is detected; a large rise is detected sooner"
    )
    is_from_history = serializers.BooleanField(
        help_text="false: too little of stable's last hour was read, so this is the default"
    )
    is_for_requests = serializers.BooleanField(
        help_text="a block is longer than that, until both sides have the requests that it needs"
    )


class PlanFiguresSerializer(Serializer):
    steps = StepFigureSerializer(many=True)
    soak_seconds = serializers.IntegerField(help_text="minimum duration of the steps")
    seconds = serializers.IntegerField(
        allow_null=True,
        help_text="Duration in seconds with the time that current traffic needs. Null if unknown.",
    )
    earliest_at = serializers.DateTimeField(
        help_text="if approved now and each step is promoted at once"
    )
    per_hour_amount = serializers.DecimalField(
        max_digits=14, decimal_places=6, allow_null=True, help_text="dollars of running both"
    )
    total_amount = serializers.DecimalField(
        max_digits=14, decimal_places=6, allow_null=True, help_text="US dollars until earliest_at"
    )
    baseline_per_hour_amount = serializers.DecimalField(
        max_digits=14,
        decimal_places=6,
        allow_null=True,
        help_text="dollars of the baseline at its largest, part of per_hour_amount; null without one",
    )
    requests_per_second = serializers.FloatField(allow_null=True, help_text="now")
    latency = LatencyDetectionSerializer(
        allow_null=True, help_text="Null if no guard compares a time with stable's."
    )
    watch_seconds = serializers.IntegerField(help_text="both revisions run after promotion")
    watch_amount = serializers.DecimalField(
        max_digits=14, decimal_places=6, allow_null=True, help_text="part of total_amount"
    )


class RolloutFiguresView(APIView):
    @extend_schema(
        operation_id="figure_rollout",
        tags=["rollouts"],
        request=PlannedRolloutSerializer,
        responses={
            200: PlanFiguresSerializer,
            403: PROBLEM,
            404: PROBLEM,
            409: PROBLEM,
            422: PROBLEM,
        },
        description="Earliest finish and dollars of a plan. Nothing is written.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body = read_body(PlannedRolloutSerializer, request)
        figures = plan_figures.preview(
            actor=actor_of(request),
            deployment_id=deployment_id,
            steps=[dict(step) for step in body["steps"]],
            plan=body.get("plan"),
        )
        return Response(PlanFiguresSerializer(figures).data)
