"""What single settings become on a cluster, in exact values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from deployments.delivery.domain import owned_kinds
from deployments.manifests.domain import http_route, revision
from deployments.manifests.domain.metadata import (
    DIGEST_ANNOTATION,
    Manifest,
    ManifestContext,
    ServedRevision,
)
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT, placed

_LLM = {"hugging_face_id": "org/model"}
_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs"


def _made(engine: str, *, size_mib: int = 100, **data: Any) -> dict[str, Manifest]:
    """The revision's own objects by kind."""
    spec = ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", **data})
    served = ServedRevision(
        1, "detector", "detector:1", "ab" * 32, "s3://b/p/", spec, size_mib=size_mib
    )
    return {manifest["kind"]: manifest for manifest in revision.own(CONTEXT, served)}


@given(placed())
def test_every_object_of_a_revision_is_of_a_kind_that_retiring_removes(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    workload, *others = revision.own(*pair)
    kinds = {(other["apiVersion"], other["kind"]) for other in others}

    assert (workload["apiVersion"], workload["kind"]) in owned_kinds.WORKLOADS
    assert kinds <= set(owned_kinds.DEPENDENT_OBJECTS)
    assert all(one["metadata"]["namespace"] == pair[0].namespace for one in [workload, *others])


def test_plain_triton_rolls_without_a_gap_and_is_probed_by_the_size_of_its_model() -> None:
    small = _made("triton", size_mib=100)["Deployment"]["spec"]
    large = _made("triton", size_mib=100_000)["Deployment"]["spec"]
    container = small["template"]["spec"]["containers"][0]
    seconds = [
        one["template"]["spec"]["containers"][0]["startupProbe"]["failureThreshold"] * 5
        for one in (small, large)
    ]

    assert small["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert container["readinessProbe"]["httpGet"] == {"path": "/v2/health/ready", "port": 8080}
    assert seconds == [185, 2180]
    assert large["progressDeadlineSeconds"] == 20 * 60 + 180 + 2000


def test_knative_gives_up_only_after_a_new_node_its_image_and_the_download() -> None:
    scaled = {"scaling": {"kind": "knative"}, "max_replicas": 2}
    service = _made("kserve-triton", size_mib=100_000, **scaled)["InferenceService"]

    assert (
        service["metadata"]["annotations"]["serving.knative.dev/progress-deadline"]
        == f"{20 * 60 + 180 + 2000}s"
    )


def test_vllm_is_ready_once_it_lists_its_models() -> None:
    model = _made("kserve-vllm", llm=_LLM)["InferenceService"]["spec"]["predictor"]["model"]

    assert model["readinessProbe"]["httpGet"]["path"] == "/v1/models"
    assert model["startupProbe"]["failureThreshold"] * 5 == 1800
    assert model["storageUri"] == "hf://org/model"
    assert "--tensor-parallel-size=1" in model["args"]


def test_several_nodes_are_workers_under_kserve() -> None:
    llm = {"artifact": "pvc://weights/m", "tensor_parallel": 2, "nodes": 3}
    service = _made("kserve-vllm", gpus=2, llm=llm)["InferenceService"]
    workers = service["spec"]["predictor"]["workerSpec"]

    assert (workers["pipelineParallelSize"], workers["tensorParallelSize"]) == (3, 2)
    annotations = service["metadata"]["annotations"]
    assert annotations["serving.kserve.io/autoscalerClass"] == "none"


def test_gpus_of_an_llm_service_reach_vllm_with_every_supported_release() -> None:
    """From KServe 0.20 the preset reads parallelism; before, only the additional arguments do."""
    llm = {**_LLM, "tensor_parallel": 4}
    spec = _made("llm-inference-service", gpus=4, llm=llm)["LLMInferenceService"]["spec"]
    env = {item["name"]: item.get("value") for item in spec["template"]["containers"][0]["env"]}

    assert spec["parallelism"] == {"tensor": 4}
    assert "--tensor-parallel-size=4 " in env["VLLM_ADDITIONAL_ARGS"]
    assert "worker" not in spec


def test_an_autoscaler_owns_the_number_of_replicas() -> None:
    fixed = _made("triton", min_replicas=2, max_replicas=2)
    scaled = _made("triton", min_replicas=2, max_replicas=4, scaling={"kind": "hpa"})

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
    made = _made("kserve-triton", max_replicas=4, scaling=scaling)
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
    made = _made("triton", max_replicas=4, scaling={**scaling, "metric": "gpu"})
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
        made = _made(engine, max_replicas=4, scaling={"kind": "hpa", "metric": "queue"})
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


def test_knative_mode_has_one_port_and_its_own_revision_behind_the_route() -> None:
    scaling = {"kind": "knative", "can_scale_to_zero": True}
    data: dict[str, Any] = {"max_replicas": 3, "scaling": scaling}
    predictor = _made("kserve-triton", **data)["InferenceService"]["spec"]["predictor"]
    spec = ServingSpec.from_json({"engine": "kserve-triton", "instance_type": "g5.xlarge", **data})
    route = http_route.http_route(CONTEXT, [http_route.backend_for(1, spec, 100, model="detector")])
    backend = route["spec"]["rules"][0]["backendRefs"][0]

    assert (predictor["minReplicas"], predictor["scaleMetric"]) == (0, "concurrency")
    assert len(predictor["model"]["ports"]) == 1
    assert "topologySpreadConstraints" not in predictor
    assert "deploymentStrategy" not in predictor
    assert backend["name"] == "detector-r1-predictor-00001"
    headers = backend["filters"][0]["requestHeaderModifier"]["set"]
    assert {header["name"]: header["value"] for header in headers} == {
        "Knative-Serving-Namespace": "vision",
        "Knative-Serving-Revision": "detector-r1-predictor-00001",
    }


@pytest.mark.parametrize(
    ("engine", "data", "service", "port"),
    [
        ("triton", {}, "detector-r1", 80),
        ("kserve-triton", {}, "detector-r1-predictor", 80),
        ("kserve-vllm", {"llm": _LLM}, "detector-r1-predictor", 80),
        ("triton-vllm", {"llm": _LLM}, "detector-r1", 80),
        ("llm-inference-service", {"llm": _LLM}, "detector-r1-kserve-workload-svc", 8000),
    ],
)
def test_the_route_refers_to_the_service_of_the_engine(
    engine: str, data: dict[str, Any], service: str, port: int
) -> None:
    spec = ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", **data})

    route = http_route.http_route(CONTEXT, [http_route.backend_for(1, spec, 100, model="detector")])

    backend = route["spec"]["rules"][0]["backendRefs"][0]
    assert (backend["name"], backend["port"]) == (service, port)


def test_spot_matches_karpenter_or_node_groups_and_on_demand_excludes_both() -> None:
    def terms(capacity: str) -> Any:
        made = _made("triton", placement={"capacity": capacity})["Deployment"]
        affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    assert [term["matchExpressions"][0]["values"] for term in terms("spot")] == [["spot"], ["SPOT"]]
    assert [expression["operator"] for expression in terms("on-demand")[0]["matchExpressions"]] == [
        "NotIn"
    ] * 2


def test_requests_come_from_the_gateway_and_metrics_from_anywhere() -> None:
    spec = _made("triton")["NetworkPolicy"]["spec"]

    assert spec["podSelector"] == {"matchLabels": {"slipway.dev/workload": "detector-r1"}}
    sources = spec["ingress"][0]["from"]
    assert sources[1]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "slipway-gateway"
    }
    assert spec["ingress"][1] == {"ports": [{"port": 8002, "protocol": "TCP"}]}


def test_a_change_of_the_autoscaler_alone_changes_the_digest() -> None:
    digests = {
        _made("triton", max_replicas=most, scaling={"kind": "hpa"})["Deployment"]["metadata"][
            "annotations"
        ][DIGEST_ANNOTATION]
        for most in (3, 4)
    }

    assert len(digests) == 2
