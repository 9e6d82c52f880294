"""vLLM's OpenAI server under KServe, with Hugging Face weights; over several nodes with workers."""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import pod_template
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    env_of,
    resources_of,
)
from deployments.spec.domain.serving_spec import Llm, ServingSpec

RUNTIME: Final = "slipway-vllm"
# Shipped with KServe; it starts Ray on every node and has its own probes.
MULTI_NODE_RUNTIME: Final = "kserve-huggingfaceserver-multinode"
_FORMAT = {"name": "huggingface", "version": "1"}
_MODELS = "/mnt/models"
_DTYPES = {"original": "auto", "fp16": "float16", "bf16": "bfloat16"}


def engine_args(spec: ServingSpec, llm: Llm) -> list[str]:
    """vLLM's arguments, without the model's path and parallelism, which the caller adds."""
    args = [
        f"--dtype={_DTYPES[spec.precision]}",
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
        "env": [*env_of(spec), *_home_env(), pod_template.hugging_face_env(served)],
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
        # With a writable root: vLLM is not known to run without one.
        "securityContext": pod_template.security(),
    }
    if llm.nodes > 1:
        # workerSpec has the sizes; the runtime refuses them as arguments.
        return {**fields, "args": [f"--model_name={served.model_name}", *engine_args(spec, llm)]}
    is_uploaded = not (llm.hugging_face_id or llm.artifact)
    args = [
        f"{_MODELS}/{served.model_name}/1" if is_uploaded else _MODELS,
        f"--served-model-name={served.model_name}",
        f"--tensor-parallel-size={llm.tensor_parallel}",
        *engine_args(spec, llm),
    ]
    return {**fields, "image": spec.image or context.vllm_image, "args": args}


def _home_env() -> list[dict[str, str]]:
    """Folders for the caches of the hub, of compiled graphs and of Triton kernels."""
    _, _, home = pod_template.scratch()
    hub = {"name": "HF_HOME", "value": f"{pod_template.SCRATCH}/huggingface"}
    return [pod_template.user_env(), home, hub]


def workers(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """One pod per additional node. GPUs of a node share each layer; nodes share the layers."""
    llm = served.spec.llm or Llm()
    return {
        "pipelineParallelSize": llm.nodes,
        "tensorParallelSize": llm.tensor_parallel,
        "serviceAccountName": account_of(served),
        **pod_template.sealed(),
        **pod_template.placement_of(context, served),
        "containers": [
            {
                "name": "worker-container",
                "env": _home_env(),
                "resources": resources_of(served.spec),
                "securityContext": pod_template.security(),
            }
        ],
    }


def serving_runtime(context: ManifestContext) -> Manifest:
    amounts = {"cpu": "1", "memory": "4Gi"}
    container = {
        "name": "kserve-container",
        "image": context.vllm_image,
        "command": ["vllm", "serve"],
        "args": ["--port=8080"],
        "env": _home_env(),
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
        "securityContext": pod_template.security(),
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
    }
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {
            "name": RUNTIME,
            "namespace": context.namespace,
            "labels": {**MANAGED_BY, "slipway.dev/team": context.team},
        },
        "spec": {
            "annotations": {
                "prometheus.kserve.io/port": "8080",
                "prometheus.kserve.io/path": "/metrics",
            },
            "multiModel": False,
            "supportedModelFormats": [{**_FORMAT, "autoSelect": False}],
            "protocolVersions": ["v2", "v1"],
            "containers": [container],
        },
    }
