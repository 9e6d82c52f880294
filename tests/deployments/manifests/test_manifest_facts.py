"""What single settings become on a cluster, in exact values."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from deployments.delivery.domain import owned_kinds
from deployments.manifests.domain import http_route, revision, tensorrt_llm
from deployments.manifests.domain.metadata import (
    ManifestContext,
    ServedRevision,
)
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT, placed
from tests.deployments.manifests.own_objects import own_objects

_LLM = {"hugging_face_id": "org/model"}
_MONITORED = {"service_monitor": True}
_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs"


@given(placed())
def test_every_object_of_a_revision_is_of_a_kind_that_retiring_removes(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    workload, *others = revision.build_own(*pair)
    kinds = {(other["apiVersion"], other["kind"]) for other in others}

    assert (workload["apiVersion"], workload["kind"]) in owned_kinds.WORKLOADS
    assert kinds <= set(owned_kinds.DEPENDENT_OBJECTS)
    assert all(one["metadata"]["namespace"] == pair[0].namespace for one in [workload, *others])


def test_plain_triton_rolls_without_a_gap_and_is_probed_by_the_size_of_its_model() -> None:
    small = own_objects("triton", size_mib=100)["Deployment"]["spec"]
    large = own_objects("triton", size_mib=100_000)["Deployment"]["spec"]
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
    service = own_objects("kserve-triton", size_mib=100_000, **scaled)["InferenceService"]

    assert (
        service["metadata"]["annotations"]["serving.knative.dev/progress-deadline"]
        == f"{20 * 60 + 180 + 2000}s"
    )


def test_vllm_is_ready_once_it_lists_its_models() -> None:
    model = own_objects("kserve-vllm", llm=_LLM)["InferenceService"]["spec"]["predictor"]["model"]

    assert model["readinessProbe"]["httpGet"]["path"] == "/v1/models"
    assert model["startupProbe"]["failureThreshold"] * 5 == 1800
    assert model["storageUri"] == "hf://org/model"
    assert "--tensor-parallel-size=1" in model["args"]


def test_sglang_starts_as_its_own_server_wants_it() -> None:
    """Health that generates a token takes a second or more, longer than a probe waits by default."""
    llm = {**_LLM, "tensor_parallel": 2, "lora_adapters": "sql=org/sql, law=org/law"}
    model = own_objects("kserve-sglang", gpus=2, llm=llm)["InferenceService"]["spec"]["predictor"][
        "model"
    ]
    env = {item["name"]: item.get("value") for item in model["env"]}

    assert model["runtime"] == "slipway-sglang"
    assert model["storageUri"] == "hf://org/model"
    assert model["args"] == [
        "--model-path=/mnt/models",
        "--served-model-name=detector",
        "--dtype=auto",
        "--kv-cache-dtype=auto",
        "--tp-size=2",
        "--enable-lora",
        "--max-loras-per-batch=3",
        "--max-lora-rank=16",
        "--lora-paths",
        "sql=org/sql",
        "law=org/law",
    ]
    assert model["readinessProbe"]["httpGet"]["path"] == "/health"
    assert model["startupProbe"]["httpGet"]["path"] == "/health"
    assert model["startupProbe"]["failureThreshold"] * 5 == 1800
    assert env["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"] == "false"
    assert env["SGLANG_ENABLE_METRICS_DEVICE_TIMER"] == "true"
    live = model["livenessProbe"]
    # The server itself gives up after 20 seconds.
    assert (live["httpGet"]["path"], live["timeoutSeconds"]) == ("/health_generate", 25)


def test_tensorrt_llm_starts_with_its_options_in_a_file_under_the_name_of_the_model(
    tmp_path: Path,
) -> None:
    """The command of the runtime with the arguments that KServe appends, by a shell as in the pod."""
    made = own_objects("kserve-tensorrt-llm", gpus=2, llm={**_LLM, "tensor_parallel": 2})
    model = made["InferenceService"]["spec"]["predictor"]["model"]
    runtime = tensorrt_llm.serving_runtime(CONTEXT)["spec"]
    container = runtime["containers"][0]
    program = tmp_path / "trtllm-serve"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nreadlink "$2"\ncat "${5#*=}"\n')
    program.chmod(0o755)
    here = [part.replace("/tmp/", f"{tmp_path}/") for part in container["command"]]
    arguments = [part.replace("/tmp/", f"{tmp_path}/") for part in container["args"]]
    env = {item["name"]: item["value"] for item in model["env"] if "value" in item}

    done = subprocess.run(
        [*here, *arguments],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        check=True,
    )

    serve, served, host, port, options, weights, file = done.stdout.splitlines()
    assert (serve, served) == ("serve", f"{tmp_path}/tensorrt-llm/detector")
    assert (host, port) == ("--host=0.0.0.0", "--port=8080")
    assert options == f"--extra_llm_api_options={tmp_path}/tensorrt-llm/options.yaml"
    assert weights == "/mnt/models"
    assert yaml.safe_load(file) == {
        "dtype": "auto",
        "tensor_parallel_size": 2,
        "kv_cache_config": {"enable_block_reuse": True, "dtype": "auto"},
        "return_perf_metrics": True,
    }
    assert "args" not in model
    assert model["storageUri"] == "hf://org/model"
    assert {model[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness")} == {
        "/health"
    }


def test_its_metrics_for_prometheus_are_not_where_those_of_the_others_are() -> None:
    """/metrics of trtllm-serve is JSON, and reading it takes it away."""
    paths = {
        engine: own_objects(engine, llm=_LLM, network=_MONITORED)["ServiceMonitor"]["spec"][
            "endpoints"
        ]
        for engine in ("kserve-vllm", "kserve-tensorrt-llm")
    }

    monitor = own_objects("triton", network=_MONITORED)["ServiceMonitor"]["spec"]
    assert monitor["sampleLimit"] == 10_000
    assert [(one["port"], one["path"]) for one in paths["kserve-vllm"]] == [("http1", "/metrics")]
    assert [(one["port"], one["path"]) for one in paths["kserve-tensorrt-llm"]] == [
        ("http1", "/prometheus/metrics")
    ]
    annotations = tensorrt_llm.serving_runtime(CONTEXT)["spec"]["annotations"]
    assert annotations["prometheus.kserve.io/path"] == "/prometheus/metrics"


def test_several_nodes_are_workers_under_kserve() -> None:
    llm = {"artifact": "pvc://weights/m", "tensor_parallel": 2, "nodes": 3}
    service = own_objects("kserve-vllm", gpus=2, llm=llm)["InferenceService"]
    workers = service["spec"]["predictor"]["workerSpec"]

    assert (workers["pipelineParallelSize"], workers["tensorParallelSize"]) == (3, 2)
    annotations = service["metadata"]["annotations"]
    assert annotations["serving.kserve.io/autoscalerClass"] == "none"


def test_gpus_of_an_llm_service_reach_vllm_with_every_supported_release() -> None:
    """From KServe 0.20 the preset reads parallelism; before, only the additional arguments do."""
    llm = {**_LLM, "tensor_parallel": 4}
    spec = own_objects("llm-inference-service", gpus=4, llm=llm)["LLMInferenceService"]["spec"]
    env = {item["name"]: item.get("value") for item in spec["template"]["containers"][0]["env"]}

    assert spec["parallelism"] == {"tensor": 4}
    assert "--tensor-parallel-size=4 " in env["VLLM_ADDITIONAL_ARGS"]
    assert "worker" not in spec


def test_nodes_of_an_llm_service_are_workers_with_copies_of_the_model() -> None:
    llm = {**_LLM, "tensor_parallel": 4, "data_parallel": 2, "nodes": 3}
    spec = own_objects("llm-inference-service", gpus=8, llm=llm)["LLMInferenceService"]["spec"]
    (container,) = spec["worker"]["containers"]
    env = {item["name"]: item.get("value") for item in container["env"]}

    assert spec["parallelism"] == {"tensor": 4, "data": 6, "dataLocal": 2}
    assert spec["worker"] == spec["template"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
    # The preset for several nodes states them; a second --data-parallel-size would replace its own.
    assert "parallel" not in env["VLLM_ADDITIONAL_ARGS"]


@pytest.mark.parametrize("engine", ["kserve-vllm", "llm-inference-service"])
def test_copies_of_a_model_and_the_gpus_of_each_reach_vllm(engine: str) -> None:
    llm = {**_LLM, "tensor_parallel": 2, "data_parallel": 4}
    manifests = own_objects(engine, gpus=8, llm=llm)
    if engine == "kserve-vllm":
        container = manifests["InferenceService"]["spec"]["predictor"]["model"]
        args = container["args"]
    else:
        container = manifests["LLMInferenceService"]["spec"]["template"]["containers"][0]
        env = {item["name"]: item.get("value") for item in container["env"]}
        args = env["VLLM_ADDITIONAL_ARGS"].split()

    assert [arg for arg in args if "parallel" in arg] == [
        "--tensor-parallel-size=2",
        "--data-parallel-size=4",
    ]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"


def test_knative_mode_has_one_port_and_its_own_revision_behind_the_route() -> None:
    scaling = {"kind": "knative", "can_scale_to_zero": True}
    data: dict[str, Any] = {"max_replicas": 3, "scaling": scaling}
    predictor = own_objects("kserve-triton", **data)["InferenceService"]["spec"]["predictor"]
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
        made = own_objects("triton", placement={"capacity": capacity})["Deployment"]
        affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    assert [term["matchExpressions"][0]["values"] for term in terms("spot")] == [["spot"], ["SPOT"]]
    assert [expression["operator"] for expression in terms("on-demand")[0]["matchExpressions"]] == [
        "NotIn"
    ] * 2


def test_requests_come_from_the_gateway_and_metrics_from_anywhere() -> None:
    spec = own_objects("triton")["NetworkPolicy"]["spec"]

    assert spec["podSelector"] == {"matchLabels": {"slipway.dev/workload": "detector-r1"}}
    sources = spec["ingress"][0]["from"]
    assert sources[1]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "slipway-gateway"
    }
    assert spec["ingress"][1] == {"ports": [{"port": 8002, "protocol": "TCP"}]}
