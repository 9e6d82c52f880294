"""Arguments of vLLM's OpenAI server with AWS's Neuron plugin: same command and API, the arguments that it
compiles for.

A device has several NeuronCores, and vLLM splits the model across cores: the specification counts devices.
"""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain import pod_template
from deployments.spec.domain.accelerators import neuron_rules
from deployments.spec.domain.serving_spec import Llm, ServingSpec
from fleet.gpus.domain import neuron

DTYPES: Final = {"original": "auto", "fp16": "float16", "bf16": "bfloat16"}
# Without these the plugin writes beside the weights, and the compiler below /var/tmp.
_COMPILED: Final = f"{pod_template.SCRATCH}/neuron-compiled-artifacts"
_CACHE: Final = f"{pod_template.SCRATCH}/neuron-compile-cache"


def runs(spec: ServingSpec) -> bool:
    return spec.gpu_resource == neuron.DEVICE


def args(spec: ServingSpec, llm: Llm) -> list[str]:
    """Batch size and length are compiled in, so they are always stated."""
    return [
        f"--tensor-parallel-size={llm.tensor_parallel * neuron_rules.CORES_EACH}",
        f"--dtype={DTYPES[spec.precision]}",
        f"--max-model-len={llm.max_model_len}",
        f"--max-num-seqs={llm.max_num_seqs}",
        "--no-enable-prefix-caching",
    ]


def env() -> list[dict[str, str]]:
    return [
        {"name": "NEURON_COMPILED_ARTIFACTS", "value": _COMPILED},
        {"name": "NEURON_COMPILE_CACHE_URL", "value": _CACHE},
    ]
