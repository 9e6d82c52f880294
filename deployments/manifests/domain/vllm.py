"""Manifests of vLLM's OpenAI server under KServe, with Hugging Face weights; over several nodes with workers."""

from __future__ import annotations

from typing import Any, Final

from deployments.engines.domain import images
from deployments.manifests.domain import language_runtime, pod_template, termination
from deployments.manifests.domain.accelerators import vllm_neuron
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    env_of,
)
from deployments.manifests.domain.pod_placement import PlacedPods
from deployments.spec.domain.serving_spec import Llm, ServingSpec

RUNTIME: Final = "slipway-vllm"
# Shipped with KServe; it starts Ray on every node and has its own probes.
MULTI_NODE_RUNTIME: Final = "kserve-huggingfaceserver-multinode"
_FORMAT = {"name": "huggingface", "version": "1"}
# Where the download puts the weights, of a hub or of an uploaded version.
MODELS: Final = "/mnt/models"
_SERVE: Final = ("vllm", "serve")
# The first release of the table that starts only if the model is the first argument.
_MODEL_FIRST: Final = (0, 18)


def parallel_args(llm: Llm) -> list[str]:
    """Return the arguments for copies of the model in one pod, and the GPUs of each."""
    copies = [f"--data-parallel-size={llm.data_parallel}"] if llm.data_parallel > 1 else []
    return [f"--tensor-parallel-size={llm.tensor_parallel}", *copies]


def engine_args(spec: ServingSpec, llm: Llm) -> list[str]:
    """Return vLLM's arguments on GPUs, without the model's path and parallelism, which the caller adds."""
    args = [
        f"--dtype={vllm_neuron.DTYPES[spec.precision]}",
        f"--gpu-memory-utilization={llm.gpu_memory_utilization:g}",
        f"--kv-cache-dtype={llm.kv_cache_dtype}",
        "--enable-prefix-caching" if llm.prefix_caching else "--no-enable-prefix-caching",
    ]
    if llm.max_model_len:
        args.append(f"--max-model-len={llm.max_model_len}")
    if llm.max_num_seqs:
        args.append(f"--max-num-seqs={llm.max_num_seqs}")
    if llm.max_num_batched_tokens:
        args.append(f"--max-num-batched-tokens={llm.max_num_batched_tokens}")
    if llm.quantization != "auto":
        args.append(f"--quantization={llm.quantization}")
    if llm.enforce_eager:
        args.append("--enforce-eager")
    return [*args, *_adapter_args(llm)]


def _adapter_args(llm: Llm) -> list[str]:
    if not llm.adapters:
        return []
    return [
        "--enable-lora",
        f"--max-loras={len(llm.adapters)}",
        f"--max-lora-rank={llm.max_lora_rank}",
        "--lora-modules",
        *llm.adapters,
    ]


def weights_uri(served: ServedRevision, llm: Llm) -> str:
    if llm.hugging_face_id:
        return f"hf://{llm.hugging_face_id}"
    return llm.artifact or served.storage_uri


def model(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    spec, llm = served.spec, served.spec.llm or Llm()
    fields: dict[str, Any] = {
        "modelFormat": dict(_FORMAT),
        "runtime": MULTI_NODE_RUNTIME if llm.nodes > 1 else RUNTIME,
        "protocolVersion": "v2",
        "storageUri": weights_uri(served, llm),
        "env": [
            *env_of(spec),
            *home_env(),
            *(vllm_neuron.env() if vllm_neuron.runs(spec) else []),
            pod_template.hugging_face_env(served),
        ],
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
        # With a writable root: vLLM is not known to run without one.
        "securityContext": pod_template.security(),
    }
    if llm.nodes > 1:
        # workerSpec has the sizes; the runtime refuses them as arguments.
        return {**fields, "args": [f"--model_name={served.model_name}", *engine_args(spec, llm)]}
    own = (
        vllm_neuron.args(spec, llm)
        if vllm_neuron.runs(spec)
        else [*parallel_args(llm), *engine_args(spec, llm)]
    )
    image = spec.image or context.vllm_image
    drain = termination.vllm_args(spec, image)
    args = [f"--served-model-name={served.model_name}", *drain, *own]
    return {**fields, "image": image, **_start(spec, image, args)}


def _start(spec: ServingSpec, image: str, args: list[str]) -> dict[str, list[str]]:
    """Return the fields that start the server with the model as its first argument: KServe puts the arguments of the
    runtime before these. Pods that may run already keep their template: those of a known older release, which takes
    the model anywhere, and those of revisions from before the grace was a setting.
    """
    release = images.read_vllm_release(image)
    is_older = release is not None and release < _MODEL_FIRST
    if is_older or not spec.termination_grace_seconds:
        return {"args": [MODELS, *args]}
    return {"command": [*_SERVE, MODELS], "args": args}


def home_env() -> list[dict[str, str]]:
    """Return folders for the caches of the hub, of compiled graphs and of Triton kernels."""
    _, _, home = pod_template.scratch()
    hub = {"name": "HF_HOME", "value": f"{pod_template.SCRATCH}/huggingface"}
    return [pod_template.user_env(), home, hub]


def workers(served: ServedRevision, pods: PlacedPods) -> dict[str, Any]:
    """Return the worker pods, one per additional node. GPUs of a node share each layer; nodes share the layers."""
    llm = served.spec.llm or Llm()
    return {
        "pipelineParallelSize": llm.nodes,
        "tensorParallelSize": llm.tensor_parallel,
        "serviceAccountName": account_of(served),
        **pod_template.restrict_pod(served.spec),
        **pods.fields,
        **termination.worker_fields(served.spec),
        "containers": [
            {
                "name": "worker-container",
                **termination.worker_lifecycle(served.spec),
                "env": home_env(),
                "resources": pods.resources,
                "securityContext": pod_template.security(),
            }
        ],
    }


def serving_runtime(context: ManifestContext) -> Manifest:
    container = {
        "image": context.vllm_image,
        "command": list(_SERVE),
        "args": ["--port=8080"],
        "env": home_env(),
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
    }
    return language_runtime.serving_runtime(
        context, name=RUNTIME, model_format=_FORMAT, container=container
    )
