"""What a pod on Neuron devices asks for: devices, not cores; and vLLM's arguments in cores."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import pod_template, resource_limits, revision
from deployments.manifests.domain.metadata import Manifest, ServedRevision
from deployments.manifests.selectors import rendering
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.serving_policy import ServingPolicy
from portal import default_images
from tests.deployments.manifest_strategies import CONTEXT
from tests.deployments.spec.test_neuron import GOOD, LLM

DEVICE = "aws.amazon.com/neuron"


def served(**fields: Any) -> ServedRevision:
    spec = ServingSpec.from_json({**GOOD, "image": "neuron:1", **fields})
    return ServedRevision(1, "chat", "chat:1", "ab" * 32, "s3://b/p/", spec)


def predictor(**fields: Any) -> dict[str, Any]:
    [workload, *_] = revision.build_own(CONTEXT, served(**fields))
    assert workload["kind"] == "InferenceService"
    found: dict[str, Any] = workload["spec"]["predictor"]
    return found


def test_a_pod_requests_devices_on_a_node_of_that_type() -> None:
    pod = predictor()

    assert pod["model"]["resources"]["limits"] == {"cpu": "2", "memory": "8Gi", DEVICE: "1"}
    assert pod["model"]["resources"]["requests"] == pod["model"]["resources"]["limits"]
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "inf2.xlarge"}
    assert pod["tolerations"] == [{"key": DEVICE, "operator": "Exists", "effect": "NoSchedule"}]
    assert pod["model"]["image"] == "neuron:1"


def test_vllm_gets_the_cores_and_the_sizes_that_it_compiles_for() -> None:
    llm = {**LLM, "tensor_parallel": 4}
    model = predictor(instance_type="inf2.24xlarge", gpus=4, llm=llm, precision="bf16")["model"]

    assert model["args"] == [
        "/mnt/models",
        "--served-model-name=chat",
        "--tensor-parallel-size=8",
        "--dtype=bfloat16",
        "--max-model-len=4096",
        "--max-num-seqs=4",
        "--no-enable-prefix-caching",
    ]


def test_compiled_models_go_where_the_user_may_write() -> None:
    env = {item["name"]: item.get("value") for item in predictor()["model"]["env"]}

    assert env["NEURON_COMPILED_ARTIFACTS"] == "/tmp/neuron-compiled-artifacts"
    assert env["NEURON_COMPILE_CACHE_URL"] == "/tmp/neuron-compile-cache"


def test_a_pod_has_the_time_to_compile() -> None:
    on_gpu = {**GOOD, "instance_type": "g5.xlarge", "gpu_resource": "nvidia.com/gpu"}
    gpu = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/", ServingSpec.from_json(on_gpu))

    assert pod_template.start_seconds(served()) == pod_template.start_seconds(gpu) + 3600


@pytest.mark.parametrize(
    ("resource", "image"),
    [(DEVICE, default_images.VLLM_NEURON), ("nvidia.com/gpu", default_images.VLLM)],
)
def test_the_image_follows_the_accelerator(resource: str, image: str) -> None:
    instance_type = "inf2.xlarge" if resource == DEVICE else "g5.xlarge"
    spec = ServingSpec.from_json({**GOOD, "gpu_resource": resource, "instance_type": instance_type})

    assert rendering.image_for(spec, ServingPolicy()) == image


def test_a_cluster_may_name_another_image() -> None:
    policy = ServingPolicy(vllm_neuron_image="mirror/neuron:1")

    assert rendering.image_for(ServingSpec.from_json(GOOD), policy) == "mirror/neuron:1"


def test_the_teams_quota_counts_devices_and_no_other_name_goes_around_it() -> None:
    quota: Manifest = resource_limits.limit_namespace(CONTEXT, quota_gpus=4)[0]
    hard = quota["spec"]["hard"]

    assert hard["requests.aws.amazon.com/neuron"] == "4"
    assert hard["requests.aws.amazon.com/neurondevice"] == "0"
    assert hard["requests.aws.amazon.com/neuroncore"] == "0"
