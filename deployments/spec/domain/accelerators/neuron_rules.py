"""Rules for serving on AWS Neuron devices. Some settings have to be known before the start, because the model
is compiled for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deployments.spec.domain.engines import KSERVE_VLLM
from deployments.spec.domain.llm import Llm
from fleet.gpus.domain import neuron
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

# The only one whose server AWS builds for Neuron.
ENGINES: Final = (KSERVE_VLLM,)
# The families of the vLLM image that the portal names. Newer images serve trn2 and trn3 only, none serves inf1.
FAMILIES: Final = ("inf2", "trn1", "trn1n")
# NeuronCores of each of their devices.
CORES_EACH: Final = 2
# Settings of CUDA, or of vLLM's own KV cache, that its Neuron backend does not have.
_UNUSED: Final = {
    "data_parallel": "Neuron's vLLM runs one copy in a pod. Use 1 and add replicas.",
    "quantization": "Neuron's vLLM takes weights as they are stored. Use auto.",
    "kv_cache_dtype": "On Neuron the KV cache has the model's own precision. Use auto.",
    "gpu_memory_utilization": "Neuron reserves memory when the model is compiled. Use 0.9, the default.",
    "max_num_batched_tokens": "Neuron computes a prompt in one step. Leave it empty.",
    "enforce_eager": "CUDA graphs are a GPU's, and Neuron always compiles. Turn it off.",
    "lora_adapters": "Adapters are compiled in on Neuron. Use weights that are merged with the adapter, or a GPU.",
}


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    if spec.gpu_resource != neuron.DEVICE:
        of_neuron = [name for name in spec.instance_types if neuron.product_of_type(name)]
        yield (
            "gpu_resource",
            not of_neuron,
            f"{''.join(of_neuron[:1])} has Neuron devices and no GPU. Use {neuron.DEVICE} with {KSERVE_VLLM}, or an "
            "instance type with GPUs.",
        )
        return
    yield (
        "gpu_resource",
        spec.engine in ENGINES,
        f"{spec.engine} needs CUDA. On Neuron devices use {KSERVE_VLLM}, or choose a GPU: nvidia.com/gpu.",
    )
    yield from _instance_types(spec)
    yield from _scaling(spec)
    if spec.llm is not None and spec.engine in ENGINES:
        yield from _llm(spec.llm)


def _instance_types(spec: ServingSpec) -> Iterator[Rule]:
    for index, name in enumerate(spec.instance_types):
        yield (
            "placement.other_instance_types" if index else "instance_type",
            name.partition(".")[0] in FAMILIES,
            f"{name} does not serve by {KSERVE_VLLM} on Neuron. Use {', '.join(FAMILIES)}, for example inf2.xlarge.",
        )
        yield (
            "gpus",
            spec.gpus in neuron.sizes(name, spec.gpus),
            f"Pods on {name} take 1, 4, 8 or 16 of its Neuron devices.",
        )


def _scaling(spec: ServingSpec) -> Iterator[Rule]:
    fix = "GPU metrics are those of NVIDIA's GPUs. Use queue, or another metric of the server."
    yield "scaling.metric", spec.scaling.metric != "gpu", fix


def _llm(llm: Llm) -> Iterator[Rule]:
    default = Llm()
    for name, fix in _UNUSED.items():
        yield f"llm.{name}", getattr(llm, name) == getattr(default, name), fix
    yield (
        "llm.nodes",
        llm.nodes == 1,
        "Neuron's vLLM runs on one node. Use 1 and a larger instance type.",
    )
    yield (
        "llm.prefix_caching",
        not llm.prefix_caching,
        "Neuron keeps one KV cache for each running request. Turn prefix caching off.",
    )
    why = "Neuron compiles the model for it before it serves."
    yield "llm.max_model_len", llm.max_model_len > 0, f"{why} Enter a length, for example 4096."
    yield "llm.max_num_seqs", llm.max_num_seqs > 0, f"{why} Enter a number, for example 4."
