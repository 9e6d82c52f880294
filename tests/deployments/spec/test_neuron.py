"""Neuron devices serve language models by vLLM; everything else is refused where it was set, with the fix."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

DEVICE = "aws.amazon.com/neuron"
LLM = {
    "hugging_face_id": "Qwen/Qwen3-8B",
    "max_model_len": 4096,
    "max_num_seqs": 4,
    "prefix_caching": False,
}
GOOD: dict[str, Any] = {
    "engine": "kserve-vllm",
    "instance_type": "inf2.xlarge",
    "gpu_resource": DEVICE,
    "llm": LLM,
}


def refused(**fields: Any) -> dict[str, str]:
    with pytest.raises(Rejected) as refusal:
        ServingSpec.from_json({**GOOD, **fields})
    return dict(refusal.value.fields)


def test_a_model_over_several_devices_is_taken() -> None:
    llm = {**LLM, "tensor_parallel": 4}
    fields = {"instance_type": "inf2.24xlarge", "gpus": 4, "max_replicas": 2, "llm": llm}
    spec = ServingSpec.from_json({**GOOD, **fields, "scaling": {"kind": "keda"}})

    assert (spec.most_gpus, ServingSpec.from_json(spec.to_json())) == (8, spec)


@pytest.mark.parametrize(
    "engine", ["kserve-triton", "triton", "kserve-sglang", "kserve-tensorrt-llm", "triton-vllm"]
)
def test_servers_that_need_cuda_name_the_one_that_does_not(engine: str) -> None:
    llm = None if engine in ("kserve-triton", "triton") else {"hugging_face_id": "a/b"}

    assert refused(engine=engine, llm=llm)["gpu_resource"] == (
        f"{engine} needs CUDA. On Neuron devices use kserve-vllm, or choose a GPU: nvidia.com/gpu."
    )


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("quantization", "fp8", "Neuron's vLLM takes weights as they are stored. Use auto."),
        ("kv_cache_dtype", "fp8", "On Neuron the KV cache has the model's own precision. Use auto."),
        ("prefix_caching", True, "Neuron keeps one KV cache for each running request. Turn prefix caching off."),
        ("max_model_len", 0, "Neuron compiles the model for it before it serves. Enter a length, for example 4096."),
        ("max_num_seqs", 0, "Neuron compiles the model for it before it serves. Enter a number, for example 4."),
        ("enforce_eager", True, "CUDA graphs are a GPU's, and Neuron always compiles. Turn it off."),
        ("max_num_batched_tokens", 512, "Neuron computes a prompt in one step. Leave it empty."),
        ("gpu_memory_utilization", 0.8, "Neuron reserves memory when the model is compiled. Use 0.9, the default."),
        (
            "lora_adapters",
            "sql=org/sql",
            "Adapters are compiled in on Neuron. Use weights that are merged with the adapter, or a GPU.",
        ),
    ],
)  # fmt: skip
def test_settings_of_cuda_and_of_vllms_own_cache_are_refused(
    name: str, value: Any, fix: str
) -> None:
    assert refused(llm={**LLM, name: value}) == {f"llm.{name}": fix}


def test_copies_and_nodes_are_refused() -> None:
    assert "llm.data_parallel" in refused(gpus=2, llm={**LLM, "data_parallel": 2})
    several = {**LLM, "hugging_face_id": "", "artifact": "pvc://weights/m", "nodes": 2}
    assert "llm.nodes" in refused(llm=several)


@pytest.mark.parametrize("name", ["trn2.48xlarge", "inf1.xlarge", "g5.xlarge"])
def test_instance_types_that_the_image_does_not_serve_are_refused(name: str) -> None:
    assert refused(instance_type=name) == {
        "instance_type": f"{name} does not serve by kserve-vllm on Neuron. Use inf2, trn1, trn1n, for example inf2.xlarge."
    }


def test_all_instance_types_have_devices() -> None:
    assert "placement.other_instance_types" in refused(
        placement={"other_instance_types": "g5.xlarge"}
    )
    ServingSpec.from_json({**GOOD, "placement": {"other_instance_types": "trn1.2xlarge"}})


def test_a_gpu_is_not_requested_of_a_node_without_one() -> None:
    assert refused(gpu_resource="nvidia.com/gpu")["gpu_resource"] == (
        "inf2.xlarge has Neuron devices and no GPU. Use aws.amazon.com/neuron with kserve-vllm, or an instance type "
        "with GPUs."
    )


def test_a_torus_is_requested_in_its_parts() -> None:
    llm = {**LLM, "tensor_parallel": 2}

    assert refused(instance_type="trn1.32xlarge", gpus=2, llm=llm) == {
        "gpus": "Pods on trn1.32xlarge take 1, 4, 8 or 16 of its Neuron devices."
    }


def test_gpu_metrics_are_refused() -> None:
    assert refused(max_replicas=2, scaling={"kind": "keda", "metric": "gpu"}) == {
        "scaling.metric": "GPU metrics are those of NVIDIA's GPUs. Use queue, or another metric of the server."
    }


@pytest.mark.parametrize(
    "resource", ["aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "amd.com/gpu"]
)
def test_other_names_of_devices_are_refused(resource: str) -> None:
    assert refused(gpu_resource=resource)["gpu_resource"].endswith("or aws.amazon.com/neuron.")
