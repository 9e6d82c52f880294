"""Where each field of the form arrives: field, what is typed with it, path in the manifests, value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.deployments.manifests import triton_settings_in_config

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
_WEIGHTS = {"llm_hugging_face_id": "org/model"}
_VLLM = {"engine": "kserve-vllm", **_WEIGHTS}
_SGLANG = {"engine": "kserve-sglang", **_WEIGHTS}
_TENSORRT_LLM = {"engine": "kserve-tensorrt-llm", **_WEIGHTS}
ARGS = f"{_KSERVE}.model.args"
# The options of trtllm-serve, as JSON.
OPTIONS = f"{_KSERVE}.model.env.5.value"
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
        "placement_priority_class",
        {"placement_priority_class": "high"},
        f"{_KSERVE}.priorityClassName",
        "high",
    ),
    (
        "placement_spread_zones",
        {"placement_spread_zones": "off"},
        f"{_KSERVE}.topologySpreadConstraints",
        None,
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
        "network_access",
        {"network_access": "keys"},
        "InferenceService.metadata.annotations.slipway$dev/access",
        "keys",
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
    ("llm_hugging_face_id", _VLLM, f"{_KSERVE}.model.storageUri", "hf://org/model"),
    (
        "llm_artifact",
        {"engine": "kserve-vllm", "llm_artifact": "oci://registry/m:1"},
        f"{_KSERVE}.model.storageUri",
        "oci://registry/m:1",
    ),
    (
        "llm_gated",
        {**_VLLM, "llm_gated": "on"},
        f"{_KSERVE}.initContainers.0.env.0.valueFrom.secretKeyRef.optional",
        False,
    ),
    (
        # 600 s, then 16,000 MiB at 100 and at 50 MiB a second; probed every 5 s.
        "llm_parameters_millions",
        {**_VLLM, "llm_parameters_millions": "8,000"},
        f"{_KSERVE}.model.startupProbe.failureThreshold",
        216,
    ),
    (
        "llm_data_parallel",
        {**_VLLM, "share": "g5.48xlarge|nvidia.com/gpu|8", "llm_data_parallel": "4"},
        ARGS,
        "--data-parallel-size=4",
    ),
    (
        "llm_prefix_routing",
        {"engine": "llm-inference-service", **_WEIGHTS, "llm_prefix_routing": "on"},
        "LLMInferenceService.spec.router",
        {"scheduler": {}},
    ),
    (
        "llm_nodes",
        {"engine": "kserve-vllm", "llm_artifact": "oci://registry/m:1", "llm_nodes": "2"},
        f"{_KSERVE}.workerSpec.pipelineParallelSize",
        2,
    ),
    ("llm_max_model_len", {**_VLLM, "llm_max_model_len": "8192"}, ARGS, "--max-model-len=8192"),
    ("llm_max_num_seqs", {**_VLLM, "llm_max_num_seqs": "64"}, ARGS, "--max-num-seqs=64"),
    (
        "llm_gpu_memory_utilization",
        {**_VLLM, "llm_gpu_memory_utilization": "85"},
        ARGS,
        "--gpu-memory-utilization=0.85",
    ),
    (
        "llm_data_parallel",
        {**_SGLANG, "share": "g5.48xlarge|nvidia.com/gpu|8", "llm_data_parallel": "4"},
        ARGS,
        "--dp-size=4",
    ),
    (
        "llm_mem_fraction_static",
        {**_SGLANG, "llm_mem_fraction_static": "85"},
        ARGS,
        "--mem-fraction-static=0.85",
    ),
    ("llm_max_model_len", {**_SGLANG, "llm_max_model_len": "8192"}, ARGS, "--context-length=8192"),
    (
        "llm_max_num_seqs",
        {**_SGLANG, "llm_max_num_seqs": "64"},
        ARGS,
        "--max-running-requests=64",
    ),
    (
        "llm_max_num_batched_tokens",
        {**_SGLANG, "llm_max_num_batched_tokens": "4096"},
        ARGS,
        "--chunked-prefill-size=4096",
    ),
    (
        "llm_kv_cache_dtype",
        {**_SGLANG, "llm_kv_cache_dtype": "fp8"},
        ARGS,
        "--kv-cache-dtype=fp8_e4m3",
    ),
    ("llm_quantization", {**_SGLANG, "llm_quantization": "fp8"}, ARGS, "--quantization=fp8"),
    (
        "llm_prefix_caching",
        {**_SGLANG, "llm_prefix_caching": "off"},
        ARGS,
        "--disable-radix-cache",
    ),
    ("llm_enforce_eager", {**_SGLANG, "llm_enforce_eager": "on"}, ARGS, "--disable-cuda-graph"),
    ("llm_lora_adapters", {**_SGLANG, "llm_lora_adapters": "sql=org/sql"}, ARGS, "sql=org/sql"),
    (
        "llm_max_lora_rank",
        {**_SGLANG, "llm_lora_adapters": "sql=org/sql", "llm_max_lora_rank": "64"},
        ARGS,
        "--max-lora-rank=64",
    ),
    *(
        (field, {**_TENSORRT_LLM, field: typed}, OPTIONS, option)
        for field, typed, option in (
            ("llm_max_model_len", "8192", '"max_seq_len": 8192'),
            ("llm_max_num_seqs", "64", '"max_batch_size": 64'),
            ("llm_max_num_batched_tokens", "4096", '"max_num_tokens": 4096'),
            ("llm_max_num_batched_tokens", "4096", '"enable_chunked_prefill": true'),
            ("llm_kv_cache_dtype", "fp8_e4m3", '"kv_cache_config": {"dtype": "fp8"'),
            ("llm_prefix_caching", "off", '"enable_block_reuse": false'),
            ("llm_enforce_eager", "on", '"cuda_graph_config": null'),
            ("precision", "bf16", '"dtype": "bfloat16"'),
        )
    ),
    ("llm_kv_cache_dtype", {**_VLLM, "llm_kv_cache_dtype": "fp8"}, ARGS, "--kv-cache-dtype=fp8"),
    ("llm_quantization", {**_VLLM, "llm_quantization": "fp8"}, ARGS, "--quantization=fp8"),
    (
        "llm_max_num_batched_tokens",
        {**_VLLM, "llm_max_num_batched_tokens": "4096"},
        ARGS,
        "--max-num-batched-tokens=4096",
    ),
    ("llm_enforce_eager", {**_VLLM, "llm_enforce_eager": "on"}, ARGS, "--enforce-eager"),
    ("llm_lora_adapters", {**_VLLM, "llm_lora_adapters": "sql=org/sql"}, ARGS, "sql=org/sql"),
    (
        "llm_max_lora_rank",
        {**_VLLM, "llm_lora_adapters": "sql=org/sql", "llm_max_lora_rank": "64"},
        ARGS,
        "--max-lora-rank=64",
    ),
    (
        "llm_prefix_caching",
        {**_VLLM, "llm_prefix_caching": "off"},
        ARGS,
        "--no-enable-prefix-caching",
    ),
]
