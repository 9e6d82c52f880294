"""A spec refuses at its field what no cluster or engine could use, and says what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.spec.domain.serving_spec import Scaling, ServingSpec
from portal.core.definitions import Rejected

_GOOD = {"engine": "kserve-triton", "instance_type": "g5.xlarge"}
_VLLM = {"engine": "kserve-vllm", "instance_type": "g5.xlarge"}
_SGLANG = {"engine": "kserve-sglang", "instance_type": "g5.xlarge"}
_TENSORRT_LLM = {"engine": "kserve-tensorrt-llm", "instance_type": "g5.xlarge"}
_TRITON_VLLM = {"engine": "triton-vllm", "instance_type": "g5.xlarge"}
_HOURS = {"timezone": "Europe/Berlin", "start": "08:00", "end": "18:00"}


def test_what_is_left_out_becomes_what_is_usual() -> None:
    fixed = ServingSpec.from_json(_GOOD)
    scaled = ServingSpec.from_json({**_GOOD, "max_replicas": 3})
    queue = ServingSpec.from_json({**_GOOD, "max_replicas": 3, "scaling": {"kind": "keda"}})

    assert fixed.scaling == Scaling(kind="fixed")
    assert scaled.scaling == Scaling(), "the cluster decides"
    assert queue.scaling == Scaling(kind="keda", metric="queue", target=5)
    assert (fixed.schema_version, fixed.placement.capacity, fixed.precision) == (
        1,
        "on-demand",
        "original",
    )


def test_a_row_is_read_as_it_was_written() -> None:
    spec = ServingSpec.from_json({**_GOOD, "gpus": 2, "env": {"APP_A": "1"}, "image": "triton:1"})

    assert ServingSpec.from_json(spec.to_json()) == spec


def test_another_schema_is_refused() -> None:
    with pytest.raises(Rejected) as refusal:
        ServingSpec.from_json({**_GOOD, "schema": 2})

    assert refusal.value.fields == {"schema": "Use spec schema 1."}


def test_replicas_of_a_model_over_several_nodes_count_all_their_gpus() -> None:
    llm = {"artifact": "pvc://weights/m", "tensor_parallel": 8, "nodes": 2}
    spec = ServingSpec.from_json(
        {"engine": "kserve-vllm", "instance_type": "p5.48xlarge", "gpus": 8, "llm": llm}
    )

    assert (spec.nodes, spec.most_gpus) == (2, 16)


def test_copies_of_a_model_in_a_pod_have_gpus_of_their_own() -> None:
    llm = {"hugging_face_id": "a/b", "tensor_parallel": 2, "data_parallel": 4}
    spec = ServingSpec.from_json(
        {"engine": "kserve-vllm", "instance_type": "p5.48xlarge", "gpus": 8, "llm": llm}
    )

    assert (spec.gpus, spec.nodes, spec.most_gpus) == (8, 1, 8)


def test_nodes_split_one_copy_or_have_copies_of_their_own() -> None:
    llm = {"artifact": "oci://registry/m:1", "nodes": 2}
    data = {"instance_type": "p5.48xlarge", "gpus": 8}
    split = ServingSpec.from_json(
        {**data, "engine": "kserve-vllm", "llm": {**llm, "tensor_parallel": 8}}
    )
    copied = ServingSpec.from_json(
        {
            **data,
            "engine": "llm-inference-service",
            "llm": {**llm, "tensor_parallel": 4, "data_parallel": 2},
        }
    )

    assert (split.nodes, split.split_nodes, split.most_gpus) == (2, 2, 16)
    assert (copied.nodes, copied.split_nodes, copied.most_gpus) == (2, 1, 16)


_CLAIM = "pvc://weights/m"
_SQS = "https://sqs.us-east-1.amazonaws.com/111122223333/jobs"
_KAFKA = {"bootstrap_servers": "kafka:9092", "topic": "jobs", "consumer_group": "models"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"batching": {"max_queue_delay_us": -1}}, "batching.max_queue_delay_us"),
        ({"batching": {"max_queue_delay_us": "5"}}, "batching.max_queue_delay_us"),
        ({"batching": {"is_dynamic": False, "max_queue_delay_us": 9}}, "batching.is_dynamic"),
        ({"batching": {"preferred_batch_sizes": [8, "16"]}}, "batching.preferred_batch_sizes"),
        ({"batching": {"delay": 1}}, "batching.delay"),
        ({"batching": 3}, "batching"),
        ({"instances_per_gpu": 0}, "instances_per_gpu"),
        ({"warm_up": "yes"}, "warm_up"),
        ({"summary_latencies": "yes"}, "summary_latencies"),
        ({**_VLLM, "summary_latencies": True}, "summary_latencies"),
        ({"precision": "int8"}, "precision"),
        ({"scaling": {"kind": "vpa"}}, "scaling.kind"),
        ({"scaling": {"kind": "fixed"}, "max_replicas": 2}, "max_replicas"),
        ({"scaling": {"kind": "hpa", "metric": "latency"}}, "scaling.metric"),
        ({**_VLLM, "scaling": {"kind": "hpa", "metric": "kv-cache"}}, "scaling.metric"),
        ({"scaling": {"kind": "keda", "metric": "first-token"}}, "scaling.metric"),
        (
            {**_VLLM, "scaling": {"kind": "keda", "metric": "kv-cache", "target": 101}},
            "scaling.target",
        ),
        (
            {
                **_VLLM,
                "scaling": {"kind": "keda", "metric": "kv-cache", "can_scale_to_zero": True},
            },
            "scaling.can_scale_to_zero",
        ),
        ({"scaling": {"kind": "hpa", "target": 101}}, "scaling.target"),
        ({"scaling": {"kind": "hpa", "can_scale_to_zero": True}}, "scaling.can_scale_to_zero"),
        ({"scaling": {"kind": "hpa", "office_hours": _HOURS}}, "scaling.office_hours"),
        ({"scaling": {"kind": "hpa", "sqs": {"queue_url": _SQS}}}, "scaling.sqs"),
        ({"scaling": {"kind": "keda", "sqs": {}}}, "scaling.sqs.queue_url"),
        ({"scaling": {"kind": "keda", "sqs": {"queue_url": ""}}}, "scaling.sqs.queue_url"),
        ({"scaling": {"kind": "keda", "sqs": {"queue_url": "http://q"}}}, "scaling.sqs.queue_url"),
        (
            {"scaling": {"kind": "keda", "kafka": {**_KAFKA, "bootstrap_servers": "kafka"}}},
            "scaling.kafka.bootstrap_servers",
        ),
        ({"scaling": {"kind": "keda", "kafka": {**_KAFKA, "lag": 0}}}, "scaling.kafka.lag"),
        (
            {"scaling": {"kind": "keda", "redis": {"address": "r:6379", "list": "a b"}}},
            "scaling.redis.list",
        ),
        ({"scaling": {"kind": "hpa", "max_latency_ms": 200}}, "scaling.max_latency_ms"),
        (
            {"scaling": {"kind": "keda", "metric": "latency", "max_latency_ms": 200}},
            "scaling.max_latency_ms",
        ),
        (
            {"scaling": {"kind": "keda", "max_gpu_memory_percent": 100}},
            "scaling.max_gpu_memory_percent",
        ),
        (
            {**_VLLM, "scaling": {"kind": "keda", "max_gpu_memory_percent": 90}},
            "scaling.max_gpu_memory_percent",
        ),
        (
            {
                "gpu_resource": "nvidia.com/mig-1g.10gb",
                "scaling": {"kind": "keda", "metric": "gpu"},
            },
            "scaling.metric",
        ),
        ({"scaling": {"kind": "keda", "metric": "gpu", "target": 101}}, "scaling.target"),
        (
            {"scaling": {"kind": "keda", "metric": "gpu", "can_scale_to_zero": True}},
            "scaling.can_scale_to_zero",
        ),
        (
            {"scaling": {"kind": "keda", "office_hours": {**_HOURS, "timezone": "Mars"}}},
            "scaling.office_hours.timezone",
        ),
        (
            {"scaling": {"kind": "keda", "office_hours": {**_HOURS, "replicas": 2}}},
            "scaling.office_hours.replicas",
        ),
        ({"engine": "triton", "scaling": {"kind": "knative"}}, "scaling.kind"),
        ({"max_replicas": 2, "scaling": {"metric": "queue"}}, "scaling.metric"),
        ({"max_replicas": 2, "scaling": {"target": 5}}, "scaling.target"),
        ({"scaling": {"kind": "keda", "can_scale_to_zero": True}}, "scaling.can_scale_to_zero"),
        (
            {"scaling": {"kind": "keda", "metric": "latency", "can_scale_to_zero": True}},
            "scaling.can_scale_to_zero",
        ),
        ({"placement": {"capacity": "reserved"}}, "placement.capacity"),
        ({"placement": {"priority_class": "High!"}}, "placement.priority_class"),
        ({"placement": {"node_labels": "pool"}}, "placement.node_labels"),
        ({"placement": {"tolerations": "reserved=batch"}}, "placement.tolerations"),
        ({"placement": {"tolerations": "a:PreferNoSchedule"}}, "placement.tolerations"),
        ({"placement": {"node_labels": "pool=a, pool=b"}}, "placement.node_labels"),
        (
            {"placement": {"node_labels": "node.kubernetes.io/instance-type=g5.xlarge"}},
            "placement.node_labels",
        ),
        ({"storage": {"shm_size": "1G"}}, "storage.shm_size"),
        ({"storage": {"model_cache": "node"}}, "storage.model_cache"),
        ({"engine": "triton", "storage": {"model_cache": "cluster"}}, "storage.model_cache"),
        ({"llm": {}}, "llm"),
        ({**_VLLM, "batching": {"max_queue_delay_us": 5}}, "batching"),
        ({**_VLLM, "instances_per_gpu": 2}, "instances_per_gpu"),
        ({**_VLLM, "llm": {"tensor_parallel": 2}}, "gpus"),
        ({**_VLLM, "gpus": 3}, "llm.tensor_parallel"),
        ({**_VLLM, "gpus": 2, "llm": {"tensor_parallel": 2, "data_parallel": 2}}, "gpus"),
        ({**_VLLM, "gpus": 3, "llm": {"data_parallel": 3}}, "llm.data_parallel"),
        (
            {**_VLLM, "gpus": 2, "llm": {"artifact": _CLAIM, "data_parallel": 2, "nodes": 2}},
            "llm.data_parallel",
        ),
        (
            {**_VLLM, "engine": "triton-vllm", "gpus": 2, "llm": {"data_parallel": 2}},
            "llm.data_parallel",
        ),
        ({**_VLLM, "llm": {"hugging_face_id": "model"}}, "llm.hugging_face_id"),
        ({**_VLLM, "llm": {"nodes": 2, "hugging_face_id": "a/b"}}, "llm.artifact"),
        (
            {**_VLLM, "engine": "triton-vllm", "llm": {"hugging_face_id": "a/b", "nodes": 2}},
            "llm.nodes",
        ),
        (
            {
                **_VLLM,
                "engine": "llm-inference-service",
                "gpu_resource": "nvidia.com/mig-1g.10gb",
                "llm": {"nodes": 2},
            },
            "gpu_resource",
        ),
        ({**_VLLM, "llm": {"prefix_routing": True}}, "llm.prefix_routing"),
        (
            {
                **_VLLM,
                "engine": "llm-inference-service",
                "llm": {"prefix_routing": True, "prefix_caching": False},
            },
            "llm.prefix_routing",
        ),
        ({**_VLLM, "llm": {"gpu_memory_utilization": 1.5}}, "llm.gpu_memory_utilization"),
        ({**_VLLM, "llm": {"mem_fraction_static": 0.5}}, "llm.mem_fraction_static"),
        ({**_SGLANG, "llm": {"gpu_memory_utilization": 0.5}}, "llm.gpu_memory_utilization"),
        ({**_SGLANG, "llm": {"mem_fraction_static": 0.05}}, "llm.mem_fraction_static"),
        ({**_SGLANG, "llm": {"quantization": "bitsandbytes"}}, "llm.quantization"),
        ({**_SGLANG, "llm": {"artifact": "pvc://w/m", "nodes": 2}}, "llm.nodes"),
        ({**_SGLANG, "summary_latencies": True}, "summary_latencies"),
        ({**_TENSORRT_LLM, "llm": {"gpu_memory_utilization": 0.5}}, "llm.gpu_memory_utilization"),
        ({**_TENSORRT_LLM, "llm": {"mem_fraction_static": 0.5}}, "llm.mem_fraction_static"),
        ({**_TENSORRT_LLM, "llm": {"quantization": "fp8"}}, "llm.quantization"),
        ({**_TENSORRT_LLM, "llm": {"kv_cache_dtype": "fp8_e5m2"}}, "llm.kv_cache_dtype"),
        ({**_TENSORRT_LLM, "llm": {"lora_adapters": "sql=org/sql"}}, "llm.lora_adapters"),
        ({**_TENSORRT_LLM, "gpus": 2, "llm": {"data_parallel": 2}}, "llm.data_parallel"),
        ({**_TENSORRT_LLM, "llm": {"artifact": "pvc://w/m", "nodes": 2}}, "llm.nodes"),
        *(
            ({**engine, "max_replicas": 2, "scaling": scaling}, "scaling.metric")
            for engine in (_TENSORRT_LLM, _TRITON_VLLM)
            for scaling in (
                {"kind": "keda", "metric": "queue"},
                {"kind": "keda", "metric": "kv-cache"},
                {"kind": "hpa", "metric": "queue"},
            )
        ),
        ({**_VLLM, "llm": {"quantization": "q4"}}, "llm.quantization"),
        ({**_VLLM, "llm": {"max_num_batched_tokens": 64}}, "llm.max_num_batched_tokens"),
        (
            {**_VLLM, "llm": {"max_num_seqs": 512, "max_num_batched_tokens": 256}},
            "llm.max_num_batched_tokens",
        ),
        ({**_VLLM, "llm": {"lora_adapters": "org/adapter"}}, "llm.lora_adapters"),
        ({**_VLLM, "llm": {"lora_adapters": "a=org/one; rm -rf /"}}, "llm.lora_adapters"),
        ({**_VLLM, "llm": {"lora_adapters": "a=org/one, a=org/two"}}, "llm.lora_adapters"),
        (
            {**_VLLM, "llm": {"lora_adapters": ",".join(f"a{n}=org/a" for n in range(9))}},
            "llm.lora_adapters",
        ),
        ({**_VLLM, "llm": {"lora_adapters": "a=org/a", "max_lora_rank": 24}}, "llm.max_lora_rank"),
        ({**_VLLM, "llm": {"max_lora_rank": 64}}, "llm.max_lora_rank"),
        (
            {
                **_VLLM,
                "engine": "triton-vllm",
                "llm": {"hugging_face_id": "a/b", "lora_adapters": "a=org/a"},
            },
            "llm.lora_adapters",
        ),
        (
            {**_VLLM, "engine": "triton-vllm", "llm": {"artifact": "pvc://claim/path"}},
            "llm.hugging_face_id",
        ),
        (
            {
                "engine": "llm-inference-service",
                "max_replicas": 2,
                "scaling": {"kind": "hpa"},
                "llm": {"hugging_face_id": "a/b"},
            },
            "scaling.kind",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_its_field(
    changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        ServingSpec.from_json({**_GOOD, **changed})

    assert field in refusal.value.fields
    assert refusal.value.fields[field]
