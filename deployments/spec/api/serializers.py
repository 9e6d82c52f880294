"""The serving spec in the API. Values are checked by the spec itself, the same as everywhere."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from deployments.spec.domain import parts, serving_spec
from deployments.spec.domain.serving_spec import Packed
from portal.api.base_serializer import Serializer


class BatchingSerializer(Serializer):
    is_dynamic = serializers.BooleanField(default=True)
    max_queue_delay_us = serializers.IntegerField(
        default=0, help_text="how long a lone request waits for others, in microseconds"
    )
    preferred_batch_sizes = serializers.ListField(
        child=serializers.IntegerField(), default=list, help_text="only for TensorRT plans"
    )


class OfficeHoursSerializer(Serializer):
    timezone = serializers.CharField(default="UTC", max_length=60)
    start = serializers.CharField(default="07:00", max_length=5)
    end = serializers.CharField(default="20:00", max_length=5)
    days = serializers.CharField(default="1-5", max_length=20, help_text="as in cron; 0 is Sunday")
    replicas = serializers.IntegerField(default=1)


class ScalingSerializer(Serializer):
    kind = serializers.ChoiceField(
        choices=parts.SCALING_KINDS,
        required=False,
        help_text="left out: hpa when max_replicas is above min_replicas, else fixed",
    )
    metric = serializers.ChoiceField(
        choices=sorted({metric for _, metric in parts.USUAL_TARGETS}),
        required=False,
        allow_blank=True,
        help_text="hpa: cpu, memory; keda: queue, latency, gateway-latency, sqs; "
        "knative: concurrency, rps. Left out: what is usual",
    )
    target = serializers.IntegerField(required=False, help_text="0 or left out: what is usual")
    can_scale_to_zero = serializers.BooleanField(default=False)
    cooldown_seconds = serializers.IntegerField(default=300)
    office_hours = OfficeHoursSerializer(required=False, allow_null=True)
    sqs_queue_url = serializers.CharField(required=False, allow_blank=True, max_length=300)


class PlacementSerializer(Serializer):
    capacity = serializers.ChoiceField(choices=parts.CAPACITIES, default="on-demand")
    priority_class = serializers.CharField(default="", allow_blank=True, max_length=63)
    spread_zones = serializers.BooleanField(default=True)


class StorageSerializer(Serializer):
    model_cache = serializers.ChoiceField(choices=parts.MODEL_CACHES, default="none")
    shm_size = serializers.CharField(
        default="1Gi", allow_blank=True, max_length=10, help_text="of /dev/shm; empty: unbounded"
    )
    service_account = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=253,
        help_text="of the team's namespace; empty: the one that the portal makes",
    )
    secret = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=253,
        help_text="of the team's namespace, with S3 keys; empty: as the cluster's policy says",
    )


class NetworkSerializer(Serializer):
    strict_mtls = serializers.BooleanField(default=False)
    service_monitor = serializers.BooleanField(default=False)


class LlmSerializer(Serializer):
    hugging_face_id = serializers.CharField(default="", allow_blank=True, max_length=200)
    artifact = serializers.CharField(
        default="", allow_blank=True, max_length=260, help_text="pvc:// or oci://"
    )
    parameters_millions = serializers.IntegerField(
        default=0, help_text="0: not known; how long it may load goes by it"
    )
    tensor_parallel = serializers.IntegerField(default=1)
    nodes = serializers.IntegerField(default=1)
    max_model_len = serializers.IntegerField(default=0, help_text="0: the model's own")
    gpu_memory_utilization = serializers.FloatField(default=0.9)
    kv_cache_dtype = serializers.ChoiceField(choices=parts.KV_CACHE_DTYPES, default="auto")
    max_num_seqs = serializers.IntegerField(default=0, help_text="0: vLLM's own choice")
    prefix_caching = serializers.BooleanField(default=True)


class ComponentsSerializer(Serializer):
    transformer_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    explainer_image = serializers.CharField(default="", allow_blank=True, max_length=300)


class PackedSerializer(Serializer):
    """A version of another model of the team, with settings of its own."""

    model = serializers.CharField(max_length=40)
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    batching = BatchingSerializer(required=False)
    instances_per_gpu = serializers.IntegerField(default=1)
    warm_up = serializers.BooleanField(default=False)
    precision = serializers.ChoiceField(choices=parts.PRECISIONS, default="original")


def packed_of(data: list[dict[str, Any]]) -> tuple[Packed, ...]:
    """Only what memory depends on."""
    return tuple(
        Packed(
            model=one["model"],
            version=one["version"],
            instances_per_gpu=one["instances_per_gpu"],
        )
        for one in data
    )


class ServingSpecSerializer(Serializer):
    engine = serializers.ChoiceField(choices=serving_spec.ENGINES)
    instance_type = serializers.CharField(max_length=40)
    gpu_resource = serializers.CharField(default=serving_spec.WHOLE_GPU, max_length=60)
    gpus = serializers.IntegerField(default=1)
    min_replicas = serializers.IntegerField(default=1)
    max_replicas = serializers.IntegerField(default=1)
    cpu = serializers.CharField(default="2", max_length=10)
    memory = serializers.CharField(default="8Gi", max_length=10)
    env = serializers.DictField(
        child=serializers.CharField(),
        default=dict,
        help_text="names of the team's own begin with APP_; beside them only tuning is taken",
    )
    image = serializers.CharField(read_only=True, help_text="pinned when the revision is asked for")
    schema = serializers.IntegerField(read_only=True)
    batching = BatchingSerializer(required=False)
    instances_per_gpu = serializers.IntegerField(default=1)
    warm_up = serializers.BooleanField(default=False)
    precision = serializers.ChoiceField(choices=parts.PRECISIONS, default="original")
    summary_latencies = serializers.BooleanField(
        default=False,
        help_text="Triton measures quantiles of its latencies (the p95 of its figures), which "
        "costs up to a third of the throughput",
    )
    scaling = ScalingSerializer(required=False)
    placement = PlacementSerializer(required=False)
    storage = StorageSerializer(required=False)
    network = NetworkSerializer(required=False)
    llm = LlmSerializer(required=False, allow_null=True)
    components = ComponentsSerializer(required=False)
    packed = PackedSerializer(
        many=True,
        required=False,
        help_text="further models of the team that the same Triton processes serve, each at "
        "/v2/models/{model} of the deployment's address",
    )
