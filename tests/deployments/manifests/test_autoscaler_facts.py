"""What an autoscaler's objects must say, each with the server's own metrics."""

from __future__ import annotations

from deployments.manifests.domain.metadata import (
    DIGEST_ANNOTATION,
)
from tests.deployments.manifests.own_objects import own_objects

_LLM = {"hugging_face_id": "org/model"}
_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs"


def test_keda_reads_the_queue_of_the_server_that_serves() -> None:
    scaling = {"kind": "keda", "metric": "queue", "max_latency_ms": 900}
    queries = {}
    for engine in ("kserve-vllm", "kserve-sglang"):
        made = own_objects(engine, llm=_LLM, max_replicas=4, scaling=scaling)
        triggers = made["ScaledObject"]["spec"]["triggers"]
        queries[engine] = [trigger["metadata"]["query"] for trigger in triggers]

    where = '{namespace="vision",pod=~"detector-r1-.+"}'
    assert queries["kserve-vllm"][0] == f"sum(vllm:num_requests_waiting{where})"
    assert queries["kserve-sglang"] == [
        f"sum(sglang:num_queue_reqs{where})",
        f"((sum(rate(sglang:e2e_request_latency_seconds_sum{where}[2m]))"
        f" / sum(rate(sglang:e2e_request_latency_seconds_count{where}[2m])) * 1000) > 0) or vector(0)",
    ]


def test_an_autoscaler_owns_the_number_of_replicas() -> None:
    fixed = own_objects("triton", min_replicas=2, max_replicas=2)
    scaled = own_objects("triton", min_replicas=2, max_replicas=4, scaling={"kind": "hpa"})

    assert fixed["Deployment"]["spec"]["replicas"] == 2
    assert "HorizontalPodAutoscaler" not in fixed
    assert "replicas" not in scaled["Deployment"]["spec"]
    autoscaler = scaled["HorizontalPodAutoscaler"]["spec"]
    assert (autoscaler["minReplicas"], autoscaler["maxReplicas"]) == (2, 4)


def test_keda_watches_queue_jobs_and_clock_and_may_go_to_zero() -> None:
    scaling = {
        "kind": "keda",
        "metric": "queue",
        "target": 3,
        "can_scale_to_zero": True,
        "cooldown_seconds": 900,
        "sqs": {"queue_url": _QUEUE},
        "office_hours": {"timezone": "Europe/Berlin", "start": "07:30", "end": "18:00"},
    }
    made = own_objects("kserve-triton", max_replicas=4, scaling=scaling)
    spec = made["ScaledObject"]["spec"]
    queue, jobs, hours = spec["triggers"]

    annotations = made["InferenceService"]["metadata"]["annotations"]
    assert annotations["serving.kserve.io/autoscalerClass"] == "external"
    assert spec["scaleTargetRef"]["name"] == "detector-r1-predictor"
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, 4)
    assert spec["cooldownPeriod"] == 900
    assert queue["metadata"]["query"] == (
        'sum(nv_inference_pending_request_count{namespace="vision",pod=~"detector-r1-.+"})'
    )
    assert (queue["metricType"], queue["metadata"]["threshold"]) == ("AverageValue", "3")
    assert jobs["metadata"]["awsRegion"] == "eu-central-1"
    assert jobs["authenticationRef"]["name"] == made["TriggerAuthentication"]["metadata"]["name"]
    assert hours["metadata"] == {
        "timezone": "Europe/Berlin",
        "start": "30 7 * * 1-5",
        "end": "0 18 * * 1-5",
        "desiredReplicas": "1",
    }


def test_every_further_trigger_of_keda_is_a_limit_of_its_own() -> None:
    scaling = {
        "kind": "keda",
        "max_latency_ms": 250,
        "max_gpu_memory_percent": 85,
        "kafka": {
            "bootstrap_servers": "kafka.data:9092",
            "topic": "jobs",
            "consumer_group": "models",
            "secret": "kafka-auth",
        },
        "redis": {"address": "redis.data:6379", "list": "jobs", "items": 7},
    }
    made = own_objects("triton", max_replicas=4, scaling={**scaling, "metric": "gpu"})
    gpu, latency, memory, kafka, redis = made["ScaledObject"]["spec"]["triggers"]
    where = (
        '{exported_namespace="vision",exported_pod=~"detector-r1-.+"}',
        '{namespace="vision",pod=~"detector-r1-.+"}',
    )

    def of_gpus(metric: str) -> str:
        return f"({metric}{where[0]} or {metric}{where[1]})"

    used, free = of_gpus("DCGM_FI_DEV_FB_USED"), of_gpus("DCGM_FI_DEV_FB_FREE")
    assert [
        (trigger["name"], trigger["metricType"], trigger["metadata"]["threshold"])
        for trigger in (gpu, latency, memory)
    ] == [
        ("gpu", "Value", "70"),
        ("latency-limit", "Value", "250"),
        ("gpu-memory-limit", "Value", "85"),
    ]
    assert gpu["metadata"]["query"] == (
        f"((avg({of_gpus('DCGM_FI_DEV_GPU_UTIL')})) > 0) or vector(0)"
    )
    assert memory["metadata"]["query"] == (
        f"((100 * max({used} / ({used} + {free}))) > 0) or vector(0)"
    )
    assert kafka == {
        "type": "kafka",
        "name": "kafka",
        "authenticationRef": {"name": "detector-r1-kafka"},
        "metadata": {
            "bootstrapServers": "kafka.data:9092",
            "consumerGroup": "models",
            "topic": "jobs",
            "lagThreshold": "100",
            "activationLagThreshold": "0",
        },
    }
    assert redis == {
        "type": "redis",
        "name": "redis",
        "metadata": {
            "address": "redis.data:6379",
            "listName": "jobs",
            "listLength": "7",
            "activationListLength": "0",
        },
    }
    assert made["TriggerAuthentication"]["spec"] == {
        "secretTargetRef": [
            {"parameter": key, "name": "kafka-auth", "key": key}
            for key in ("sasl", "username", "password", "tls")
        ]
    }


def test_an_hpa_scales_on_the_queue_by_an_external_metric_of_every_triton_engine() -> None:
    for engine, target, service in (
        ("triton", "detector-r1", "detector-r1"),
        ("kserve-triton", "detector-r1-predictor", "detector-r1-predictor"),
    ):
        made = own_objects(engine, max_replicas=4, scaling={"kind": "hpa", "metric": "queue"})
        spec = made["HorizontalPodAutoscaler"]["spec"]

        assert spec["scaleTargetRef"]["name"] == target
        assert spec["metrics"] == [
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": "nv_inference_pending_request_count",
                        "selector": {"matchLabels": {"service": service}},
                    },
                    "target": {"type": "AverageValue", "averageValue": "5"},
                },
            }
        ]
    annotations = made["InferenceService"]["metadata"]["annotations"]
    assert annotations["serving.kserve.io/autoscalerClass"] == "external"
    assert "scaleMetric" not in made["InferenceService"]["spec"]["predictor"]


def test_a_change_of_the_autoscaler_alone_changes_the_digest() -> None:
    digests = {
        own_objects("triton", max_replicas=most, scaling={"kind": "hpa"})["Deployment"]["metadata"][
            "annotations"
        ][DIGEST_ANNOTATION]
        for most in (3, 4)
    }

    assert len(digests) == 2
