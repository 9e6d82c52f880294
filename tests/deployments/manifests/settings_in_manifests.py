"""Where each field of the form arrives: field, what is typed with it, path in the manifests, value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.deployments.manifests import language_model_settings, triton_settings_in_config
from tests.deployments.manifests.language_model_settings import ARGS

_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs"
_KEDA = {"scaling_kind": "keda", "max_replicas": "4"}
_HOURS = {**_KEDA, "scaling_office_hours": "on"}
_SQS = {**_KEDA, "scaling_sqs": "on", "scaling_sqs_queue_url": _QUEUE}
_KAFKA = {
    **_KEDA,
    "scaling_kafka": "on",
    "scaling_kafka_bootstrap_servers": "kafka:9092",
    "scaling_kafka_topic": "jobs",
    "scaling_kafka_consumer_group": "models",
}
_REDIS = {
    **_KEDA,
    "scaling_redis": "on",
    "scaling_redis_address": "redis:6379",
    "scaling_redis_list": "jobs",
}
_TRIGGER = "ScaledObject.spec.triggers.0.metadata"
TRITON = "Deployment.spec.template.spec"
_KSERVE = "InferenceService.spec.predictor"
_SPOT = [
    {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    for key, value in (
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
    )
]
ROUTE = "ServiceAccount.metadata.annotations.eks$amazonaws$com/role-arn"
# Field, what is typed with it, where it arrives, as what. A text in a list or text has to be in it.
ARRIVES: list[tuple[str, Mapping[str, str], str, Any]] = [
    ("scaling_kind", {**_KEDA, "scaling_kind": "keda"}, "ScaledObject.spec.maxReplicaCount", 4),
    (
        "scaling_metric",
        {**_KEDA, "scaling_metric": "latency"},
        "ScaledObject.spec.triggers.0.name",
        "latency",
    ),
    (
        "scaling_target",
        {**_KEDA, "scaling_target": "7"},
        "ScaledObject.spec.triggers.0.metadata.threshold",
        "7",
    ),
    (
        "scaling_can_scale_to_zero",
        {**_KEDA, "scaling_metric": "gateway-latency", "scaling_can_scale_to_zero": "on"},
        "ScaledObject.spec.minReplicaCount",
        0,
    ),
    (
        "scaling_cooldown_seconds",
        {**_KEDA, "scaling_cooldown_seconds": "901"},
        "ScaledObject.spec.cooldownPeriod",
        901,
    ),
    (
        "scaling_max_latency_ms",
        {**_KEDA, "scaling_max_latency_ms": "250"},
        "ScaledObject.spec.triggers.1.metadata.threshold",
        "250",
    ),
    (
        "scaling_max_gpu_memory_percent",
        {**_KEDA, "scaling_max_gpu_memory_percent": "85"},
        "ScaledObject.spec.triggers.1.metadata.threshold",
        "85",
    ),
    ("scaling_sqs", _SQS, "ScaledObject.spec.triggers.0.type", "aws-sqs-queue"),
    ("scaling_sqs_queue_url", _SQS, f"{_TRIGGER}.queueURL", _QUEUE),
    ("scaling_sqs_messages", {**_SQS, "scaling_sqs_messages": "9"}, f"{_TRIGGER}.queueLength", "9"),
    ("scaling_kafka", _KAFKA, "ScaledObject.spec.triggers.0.type", "kafka"),
    ("scaling_kafka_bootstrap_servers", _KAFKA, f"{_TRIGGER}.bootstrapServers", "kafka:9092"),
    ("scaling_kafka_topic", _KAFKA, f"{_TRIGGER}.topic", "jobs"),
    ("scaling_kafka_consumer_group", _KAFKA, f"{_TRIGGER}.consumerGroup", "models"),
    ("scaling_kafka_lag", {**_KAFKA, "scaling_kafka_lag": "9"}, f"{_TRIGGER}.lagThreshold", "9"),
    (
        "scaling_kafka_secret",
        {**_KAFKA, "scaling_kafka_secret": "auth"},
        "TriggerAuthentication.spec.secretTargetRef.0.name",
        "auth",
    ),
    ("scaling_redis", _REDIS, "ScaledObject.spec.triggers.0.type", "redis"),
    ("scaling_redis_address", _REDIS, f"{_TRIGGER}.address", "redis:6379"),
    ("scaling_redis_list", _REDIS, f"{_TRIGGER}.listName", "jobs"),
    ("scaling_redis_items", {**_REDIS, "scaling_redis_items": "9"}, f"{_TRIGGER}.listLength", "9"),
    (
        "scaling_redis_secret",
        {**_REDIS, "scaling_redis_secret": "auth"},
        "TriggerAuthentication.spec.secretTargetRef.0.name",
        "auth",
    ),
    ("scaling_office_hours", _HOURS, f"{_TRIGGER}.timezone", "UTC"),
    (
        "scaling_office_hours_start",
        {**_HOURS, "scaling_office_hours_start": "08:15"},
        f"{_TRIGGER}.start",
        "15 8 * * 1-5",
    ),
    (
        "scaling_office_hours_end",
        {**_HOURS, "scaling_office_hours_end": "19:45"},
        f"{_TRIGGER}.end",
        "45 19 * * 1-5",
    ),
    (
        "scaling_office_hours_days",
        {**_HOURS, "scaling_office_hours_days": "1-6"},
        f"{_TRIGGER}.start",
        "0 7 * * 1-6",
    ),
    (
        "scaling_office_hours_timezone",
        {**_HOURS, "scaling_office_hours_timezone": "Asia/Tokyo"},
        f"{_TRIGGER}.timezone",
        "Asia/Tokyo",
    ),
    (
        "scaling_office_hours_replicas",
        {**_HOURS, "scaling_office_hours_replicas": "3"},
        f"{_TRIGGER}.desiredReplicas",
        "3",
    ),
    ("batching_is_dynamic", {"batching_is_dynamic": "off"}, "config", "!dynamic_batching"),
    (
        "batching_max_queue_delay_us",
        {"batching_max_queue_delay_us": "750"},
        "config",
        "max_queue_delay_microseconds: 750",
    ),
    (
        "batching_preferred_batch_sizes",
        {"batching_preferred_batch_sizes": "4, 8"},
        "config",
        "preferred_batch_size: [4, 8]",
    ),
    *triton_settings_in_config.ARRIVES,
    ("instances_per_gpu", {"instances_per_gpu": "3"}, "config", "count: 3"),
    ("warm_up", {"warm_up": "on"}, "config", "model_warmup"),
    ("precision", {"precision": "fp16"}, "config", 'value: "FP16"'),
    (
        "placement_capacity",
        {"placement_capacity": "spot"},
        f"{_KSERVE}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms",
        _SPOT,
    ),
    (
        "placement_other_instance_types",
        {"placement_other_instance_types": "g6.xlarge"},
        f"{_KSERVE}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms.0.matchExpressions.0.values",
        ["g5.xlarge", "g6.xlarge"],
    ),
    (
        "placement_queue",
        {"placement_queue": "serving"},
        "InferenceService.spec.predictor.labels.kueue$x-k8s$io/queue-name",
        "serving",
    ),
    (
        "placement_priority_class",
        {"placement_priority_class": "high"},
        f"{_KSERVE}.priorityClassName",
        "high",
    ),
    (
        "placement_node_labels",
        {"placement_node_labels": "pool=serving"},
        f"{_KSERVE}.nodeSelector.pool",
        "serving",
    ),
    (
        "placement_tolerations",
        {"placement_tolerations": "reserved=batch:NoSchedule"},
        f"{_KSERVE}.tolerations.1",
        {"key": "reserved", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
    ),
    (
        "placement_device_claims",
        {"placement_device_claims": "on"},
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.deviceClassName",
        "gpu.nvidia.com",
    ),
    (
        "placement_claim_product",
        {"placement_device_claims": "on", "placement_claim_product": "NVIDIA L4"},
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.selectors.0.cel.expression",
        "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'",
    ),
    (
        "placement_claim_memory_gib",
        {"placement_device_claims": "on", "placement_claim_memory_gib": "20"},
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.selectors.0.cel.expression",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('20Gi')) >= 0",
    ),
    (
        "placement_claim_tolerations",
        {"placement_device_claims": "on", "placement_claim_tolerations": "a/hot=1:NoExecute"},
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.tolerations",
        [{"key": "a/hot", "operator": "Equal", "value": "1", "effect": "NoExecute"}],
    ),
    (
        "placement_spread_zones",
        {"placement_spread_zones": "off"},
        f"{_KSERVE}.topologySpreadConstraints",
        None,
    ),
    (
        "placement_do_not_disrupt",
        {"placement_do_not_disrupt": "on", "engine": "triton"},
        "Deployment.spec.template.metadata.annotations.karpenter$sh/do-not-disrupt",
        "true",
    ),
    (
        "placement_do_not_disrupt",
        {"placement_do_not_disrupt": "on"},
        f"{_KSERVE}.annotations.karpenter$sh/do-not-disrupt",
        "true",
    ),
    (
        "termination_grace_seconds",
        {"termination_grace_seconds": "120", "engine": "triton"},
        f"{TRITON}.terminationGracePeriodSeconds",
        120,
    ),
    (
        "termination_grace_seconds",
        {"termination_grace_seconds": "120"},
        f"{_KSERVE}.terminationGracePeriodSeconds",
        120,
    ),
    (
        "placement_pre_pull",
        {"placement_pre_pull": "on", "engine": "triton"},
        "DaemonSet.spec.template.spec.containers.1.image",
        "storage:1",
    ),
    (
        "storage_model_cache",
        {"storage_model_cache": "cluster"},
        "LocalModelCache.spec.nodeGroups",
        ["gpu"],
    ),
    (
        "storage_volume_claim",
        {
            "storage_model_cache": "volume",
            "storage_volume_claim": "models",
            "engine": "triton",
        },
        f"{TRITON}.volumes.0.persistentVolumeClaim.claimName",
        "models",
    ),
    (
        "storage_shm_size",
        {"storage_shm_size": "3Gi"},
        f"{_KSERVE}.volumes.0.emptyDir.sizeLimit",
        "3Gi",
    ),
    (
        "storage_service_account",
        {"storage_service_account": "readers", "engine": "triton"},
        f"{TRITON}.serviceAccountName",
        "readers",
    ),
    (
        "storage_secret",
        {"storage_secret": "models-s3", "engine": "triton"},
        f"{TRITON}.initContainers.0.envFrom",
        [{"secretRef": {"name": "models-s3"}}],
    ),
    (
        "network_token_issuer",
        {"network_access": "jwt", "network_token_issuer": "acme"},
        "InferenceService.metadata.annotations.slipway$dev/token-issuer",
        "acme",
    ),
    (
        "network_access",
        {"network_access": "keys"},
        "InferenceService.metadata.annotations.slipway$dev/access",
        "keys",
    ),
    (
        "network_team_address",
        {
            "engine": "kserve-vllm",
            "llm_hugging_face_id": "org/model",
            "network_team_address": "on",
        },
        "InferenceService.metadata.annotations.slipway$dev/team-address",
        "on",
    ),
    (
        "network_strict_mtls",
        {"network_strict_mtls": "on"},
        "PeerAuthentication.spec.mtls.mode",
        "STRICT",
    ),
    (
        "network_service_monitor",
        {"network_service_monitor": "on"},
        "ServiceMonitor.spec.endpoints.0.port",
        "metrics",
    ),
    (
        "summary_latencies",
        {"summary_latencies": "on"},
        ARGS,
        "--metrics-config=summary_latencies=true",
    ),
    *language_model_settings.ROWS,
]
