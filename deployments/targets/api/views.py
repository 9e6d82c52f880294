"""Standing targets of a deployment, by REST."""

from __future__ import annotations

from typing import Final

from django.urls import URLPattern, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.serving.selectors import deployments
from deployments.states import TargetMetric
from deployments.targets.domain import metrics
from deployments.targets.domain.burn import TargetState
from deployments.targets.selectors import targets as target_views
from deployments.targets.services import targets
from deployments.targets.services.targets import TargetDraft
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS
from portal.core.errors import NotFound

TAGS: Final = ["deployments"]
_METRIC: Final = OpenApiParameter(
    "metric", str, OpenApiParameter.PATH, enum=[metric.value for metric in TargetMetric]
)


class TargetDraftSerializer(Serializer):
    objective_percent = serializers.DecimalField(
        max_digits=6,
        decimal_places=3,
        help_text=f"share of good requests, {metrics.LEAST_PERCENT:g} to {metrics.MOST_PERCENT:g}",
    )
    window_days = serializers.ChoiceField(choices=metrics.WINDOWS)
    threshold_ms = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=metrics.MOST_MS,
        help_text="limit of p95 or first_token; null for availability",
    )


class BurnRuleSerializer(Serializer):
    factor = serializers.FloatField(source="rule.factor", help_text="fires from this rate on")
    long_minutes = serializers.IntegerField(source="rule.long_minutes")
    long_rate = serializers.FloatField(
        allow_null=True, help_text="1 uses up the budget in exactly the window; null is not known"
    )
    short_minutes = serializers.IntegerField(source="rule.short_minutes")
    short_rate = serializers.FloatField(allow_null=True)
    fires = serializers.BooleanField(allow_null=True, help_text="Null if unknown.")


class TargetSerializer(Serializer):
    metric = choice_of(TargetMetric)
    objective_percent = serializers.FloatField(source="target.objective_percent")
    window_days = serializers.IntegerField(source="target.window_days")
    threshold_ms = serializers.IntegerField(source="target.threshold_ms", allow_null=True)
    description = serializers.CharField()
    state = choice_of(TargetState, source="evaluation.state")
    requests = serializers.IntegerField(source="evaluation.sums.total")
    bad_requests = serializers.IntegerField(source="evaluation.sums.bad")
    allowed_bad_requests = serializers.FloatField(source="evaluation.allowed_bad")
    budget_left = serializers.FloatField(
        source="evaluation.budget_left",
        allow_null=True,
        help_text="1: untouched, 0: used up, negative: exceeded, null: no requests are known",
    )
    known_share = serializers.FloatField(
        source="evaluation.known_share", help_text="part of the window that was read"
    )
    burn_rates = BurnRuleSerializer(source="evaluation.rules", many=True)
    counted_until = serializers.DateTimeField(source="target.counted_until", allow_null=True)


class TargetsView(APIView):
    @extend_schema(
        operation_id="list_targets",
        tags=TAGS,
        responses={200: TargetSerializer(many=True), 404: PROBLEM},
        description="Service level objectives with error budget and burn rates. Minutes that were not read "
        "count neither as good nor as bad.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(TargetSerializer(target_views.list_of(deployment), many=True).data)


class TargetView(APIView):
    @extend_schema(
        operation_id="set_target",
        tags=TAGS,
        parameters=[_METRIC],
        request=TargetDraftSerializer,
        responses={200: TargetSerializer, **REFUSALS},
        description="Create or change the target of this metric. A changed limit is counted again.",
    )
    def put(self, request: Request, deployment_id: int, metric: str) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        draft = TargetDraft(_metric(metric), **read_body(TargetDraftSerializer, request))
        targets.set_target(actor=actor, deployment_id=deployment_id, draft=draft)
        views = target_views.list_of(deployment)
        view = next(view for view in views if view.metric == draft.metric)
        return Response(TargetSerializer(view).data)

    @extend_schema(
        operation_id="remove_target",
        tags=TAGS,
        parameters=[_METRIC],
        responses={204: None, **REFUSALS},
    )
    def delete(self, request: Request, deployment_id: int, metric: str) -> Response:
        actor = actor_of(request)
        deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        targets.remove(actor=actor, deployment_id=deployment_id, metric=_metric(metric))
        return Response(status=204)


def _metric(text: str) -> TargetMetric:
    try:
        return TargetMetric(text)
    except ValueError as error:
        names = ", ".join(metric.value for metric in TargetMetric)
        raise NotFound(f"There is no such metric. Use one of {names}.") from error


_TARGETS: Final = "deployments/<int:deployment_id>/targets"
urlpatterns: list[URLPattern] = [
    path(_TARGETS, TargetsView.as_view(), name="targets"),
    path(f"{_TARGETS}/<str:metric>", TargetView.as_view(), name="target"),
]
