"""The watch of a deployment after its rollouts, by REST."""

from __future__ import annotations

from typing import Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.guards.domain.answers.answer_metrics import AnswerKind
from deployments.health.domain.baseline import BaselineMetric
from deployments.health.selectors import health
from deployments.health.services import switch
from deployments.serving.selectors import deployments
from deployments.states import HealthCheckKind, HealthVerdict
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS: Final = ["deployments"]
_MOST_RECORDS: Final = 500


class MetricSerializer(Serializer):
    metric = choice_of(BaselineMetric)
    verdict = choice_of(HealthVerdict, help_text="failed: outside the baseline")
    value = serializers.FloatField(
        allow_null=True, help_text="last 60 minutes: ratio, ms, requests per second or 0 to 1"
    )
    low = serializers.FloatField(allow_null=True, help_text="lowest at this hour in 7 days")
    high = serializers.FloatField(allow_null=True)


class AnswersSerializer(Serializer):
    kind = choice_of(AnswerKind)
    verdict = choice_of(HealthVerdict, source="day.verdict")
    message = serializers.CharField(source="day.message")
    n = serializers.IntegerField(source="day.n")
    effect = serializers.FloatField(source="day.effect", allow_null=True)
    p = serializers.FloatField(source="day.p", allow_null=True)


class HealthSwitchSerializer(Serializer):
    is_on = serializers.BooleanField(help_text="off: nothing is sent, judged or notified")


class HealthSerializer(HealthSwitchSerializer):
    verdict = choice_of(HealthVerdict)
    checked_at = serializers.DateTimeField(allow_null=True)
    revision = serializers.IntegerField(source="revision_number", allow_null=True)
    since = serializers.DateTimeField(allow_null=True, help_text="when it became stable")
    baseline_message = serializers.CharField(help_text="why the baseline is not judged")
    metrics = MetricSerializer(many=True)
    golden_verdict = choice_of(HealthVerdict)
    golden_message = serializers.CharField()
    golden_checked_at = serializers.DateTimeField(allow_null=True)
    answers = AnswersSerializer(
        many=True, help_text="Statistics of the answers on the last complete day."
    )
    off_requested = serializers.CharField(
        help_text="who requested to switch it off, and the approvals that it needs; empty: nobody"
    )


class HealthRecordSerializer(Serializer):
    at = serializers.DateTimeField()
    kind = choice_of(HealthCheckKind)
    subject = serializers.CharField(help_text="the metric, or the kind of answers")
    verdict = choice_of(HealthVerdict)
    message = serializers.CharField()
    revision = serializers.IntegerField(source="revision_number")


class HealthView(APIView):
    @extend_schema(
        operation_id="get_health",
        tags=TAGS,
        responses={200: HealthSerializer, 404: PROBLEM},
        description="The stable revision compared with its 7-day baseline, its golden requests every 15 minutes, "
        "and each day's answers compared with those after its promotion.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(HealthSerializer(health.view_of(deployment)).data)

    @extend_schema(
        operation_id="switch_health",
        tags=TAGS,
        request=HealthSwitchSerializer,
        responses={200: HealthSerializer, **REFUSALS},
        description="Switching it off needs the approvals of a change: the first call requests it, calls of others approve "
        "it. Switching it on needs none.",
    )
    def put(self, request: Request, deployment_id: int) -> Response:
        body = read_body(HealthSwitchSerializer, request)
        deployment = switch.switch(
            actor=actor_of(request), deployment_id=deployment_id, is_on=body["is_on"]
        )
        return Response(HealthSerializer(health.view_of(deployment)).data)


class HealthHistoryView(APIView):
    @extend_schema(
        operation_id="list_health_history",
        tags=TAGS,
        responses={200: HealthRecordSerializer(many=True), 404: PROBLEM},
        description=f"Newest first, {_MOST_RECORDS} at most; kept for 90 days.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        rows = health.history_of(deployment)[:_MOST_RECORDS]
        return Response(HealthRecordSerializer(rows, many=True).data)


_HEALTH: Final = "deployments/<int:deployment_id>/health"
urlpatterns: list[URLPattern] = [
    path(_HEALTH, HealthView.as_view(), name="health"),
    path(f"{_HEALTH}/history", HealthHistoryView.as_view(), name="health-history"),
]
