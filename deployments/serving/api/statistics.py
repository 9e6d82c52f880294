"""Current request statistics of a deployment."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.serving.selectors import deployments, statistics
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of
from portal.api.responses import PROBLEM


class LatencySplitSerializer(Serializer):
    """The mean time of a successful request, split by where it is spent."""

    queue_ms = serializers.FloatField(allow_null=True)
    input_ms = serializers.FloatField(allow_null=True)
    compute_ms = serializers.FloatField(allow_null=True)
    output_ms = serializers.FloatField(allow_null=True)


class LanguageStatsSerializer(Serializer):
    """The tokens of a language model; null means unknown."""

    prompt_tokens = serializers.IntegerField()
    generation_tokens = serializers.IntegerField()
    prompt_tokens_per_second = serializers.FloatField(allow_null=True)
    generation_tokens_per_second = serializers.FloatField(allow_null=True)
    time_to_first_token_ms = serializers.FloatField(allow_null=True, help_text="mean")
    time_to_first_token_p95_ms = serializers.FloatField(
        allow_null=True, help_text="95th percentile, between the bounds of the server's histogram"
    )
    inter_token_ms = serializers.FloatField(allow_null=True, help_text="mean")
    kv_cache_usage = serializers.FloatField(
        allow_null=True, help_text="0 to 1, of the fullest pod; from a language model's own server"
    )
    running_requests = serializers.IntegerField(allow_null=True)
    preemptions = serializers.IntegerField(help_text="computed again because the KV cache was full")


class ServingStatsSerializer(Serializer):
    """Statistics of the last `seconds`, summed over the pods; null means unknown."""

    seconds = serializers.IntegerField()
    requests_per_second = serializers.FloatField(allow_null=True)
    error_ratio = serializers.FloatField(allow_null=True)
    mean_latency_ms = serializers.FloatField(allow_null=True)
    latency_split = LatencySplitSerializer(source="*")
    p95_ms = serializers.FloatField(allow_null=True, help_text="Latency of the slowest pod.")
    p95_source = serializers.CharField(help_text="source of p95_ms; empty without it")
    busy_ratio = serializers.FloatField(allow_null=True)
    busy_source = serializers.CharField()
    mean_batch_size = serializers.FloatField(allow_null=True)
    pending_requests = serializers.IntegerField(allow_null=True)
    success = serializers.IntegerField()
    failure = serializers.IntegerField()
    inferences = serializers.IntegerField()
    pods = serializers.IntegerField()
    latest_at = serializers.DateTimeField(allow_null=True, help_text="when a pod was last read")
    language = LanguageStatsSerializer(
        allow_null=True, help_text="Null if it is not a language model."
    )


class RevisionStatsSerializer(Serializer):
    """The statistics of one revision."""

    number = serializers.IntegerField()
    role = serializers.CharField(help_text="stable, candidate or baseline")
    stats = ServingStatsSerializer(allow_null=True)


class DeploymentStatsSerializer(Serializer):
    """The statistics of a deployment; `total` is null when no pod was polled in the interval."""

    seconds = serializers.IntegerField()
    total = ServingStatsSerializer(
        allow_null=True, help_text="Null if no pod was polled in this interval."
    )
    revisions = RevisionStatsSerializer(many=True)


class StatsView(APIView):
    @extend_schema(
        operation_id="get_deployment_stats",
        tags=["deployments"],
        responses={200: DeploymentStatsSerializer, 404: PROBLEM},
        description=(
            "Requests, errors, latency and GPU busy time of the last minutes. Null: unknown."
        ),
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(DeploymentStatsSerializer(statistics.by_revision(deployment)).data)
