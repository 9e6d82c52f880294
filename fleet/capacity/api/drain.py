"""The preview of a drain in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.capacity.domain.drain_preview import DrainFit, Hold
from fleet.capacity.services import drain_preview
from portal.api.base_serializer import Serializer, choice_of, dollars
from portal.api.requests import actor_of


class MovedPodSerializer(Serializer):
    namespace = serializers.CharField(source="pod.namespace")
    name = serializers.CharField(source="pod.name")
    team_slug = serializers.CharField(source="pod.team_slug")
    deployment = serializers.CharField(source="pod.deployment")
    gpu_resource = serializers.CharField(source="pod.gpu_resource")
    gpu_units = serializers.IntegerField(source="pod.size.gpus")
    fit = choice_of(DrainFit)
    target = serializers.CharField(help_text="the node that it would fill best")


class BudgetVerdictSerializer(Serializer):
    namespace = serializers.CharField(source="budget.namespace")
    name = serializers.CharField(source="budget.name")
    pods = serializers.IntegerField(help_text="Number of pods of this node that it covers.")
    allowed = serializers.IntegerField(source="budget.allowed", allow_null=True)
    hold = choice_of(Hold)


class DrainPreviewSerializer(Serializer):
    node_id = serializers.IntegerField(source="node.pk")
    pods = MovedPodSerializer(source="preview.pods", many=True)
    budgets = BudgetVerdictSerializer(
        source="preview.budgets",
        many=True,
        allow_null=True,
        help_text="Null if the cluster did not respond; see problem.",
    )
    usd_per_hour_amount = dollars(
        allow_null=True, help_text="saved once the node is removed, not by draining it"
    )
    problem = serializers.CharField()


class DrainPreviewView(APIView):
    @extend_schema(
        operation_id="node_drain_preview",
        tags=["fleet"],
        description="Say what draining the node would do now: where its pods would fit, and which "
        "PodDisruptionBudgets would hold their evictions. Changes nothing. For leads and platform "
        "admins; pods of other teams have no names.",
        responses=DrainPreviewSerializer,
    )
    def get(self, request: Request, node_id: int) -> Response:
        drain = drain_preview.preview(actor=actor_of(request), node_id=node_id)
        return Response(DrainPreviewSerializer(drain).data)
