"""TensorRT-LLM's OpenAI server, `trtllm-serve`, under KServe on one node. It reads a folder of Hugging Face with its
PyTorch backend, so there is nothing to build.

Options are those of TensorRT-LLM 1.2 (tensorrt_llm/commands/serve.py, llmapi/llm_args.py, serve/openai_server.py).
Those of the model are in the file of `--extra_llm_api_options`, which overrides the command line in that release.
"""

from __future__ import annotations

import json
from typing import Any, Final

from deployments.manifests.domain import language_runtime, pod_template, vllm
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    env_of,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm, ServingSpec

RUNTIME: Final = "slipway-tensorrt-llm"
# /metrics has the last iterations as JSON, and forgets what was read.
METRICS_PATH: Final = "/prometheus/metrics"
# Of a runtime of our own: KServe chooses none by it.
_FORMAT: Final = {"name": "huggingface", "version": "1"}
_PORT: Final = {"name": "http1", "containerPort": 8080, "protocol": "TCP"}
_DTYPES: Final = {"original": "auto", "fp16": "float16", "bf16": "bfloat16"}
# It has one of 8 bits, with four bits for the exponent.
_KV_CACHE_DTYPES: Final = {"auto": "auto", "fp8": "fp8", "fp8_e4m3": "fp8"}
# Refuses connections until the model is loaded; then asks whether the engine lives.
_HEALTH: Final = "/health"
_FOLDER: Final = f"{pod_template.SCRATCH}/tensorrt-llm"
_OPTIONS_FILE: Final = f"{_FOLDER}/options.yaml"
_OPTIONS: Final = "SLIPWAY_TENSORRT_LLM_OPTIONS"
_NAME: Final = "SLIPWAY_TENSORRT_LLM_NAME"
# The server calls the model as its folder is called, and reads its options from a file only.
_START: Final = (
    f'mkdir -p {_FOLDER} && ln -sfn {vllm.MODELS} "{_FOLDER}/${_NAME}" && '
    f'printf %s "${_OPTIONS}" > {_OPTIONS_FILE} && exec trtllm-serve serve "{_FOLDER}/${_NAME}" "$@"'
)
COMMAND: Final = ("/bin/sh", "-ec", _START, "trtllm-serve")


def engine_options(spec: ServingSpec, llm: Llm) -> dict[str, Any]:
    """Return the arguments of `LLM` by their names. One that is not set is the server's choice."""
    options: dict[str, Any] = {
        "dtype": _DTYPES[spec.precision],
        "tensor_parallel_size": llm.tensor_parallel,
        "kv_cache_config": {
            "enable_block_reuse": llm.prefix_caching,
            "dtype": _KV_CACHE_DTYPES[llm.kv_cache_dtype],
        },
        # Without it the server has no metrics for Prometheus.
        "return_perf_metrics": True,
    }
    if llm.max_model_len:
        options["max_seq_len"] = llm.max_model_len
    if llm.max_num_seqs:
        options["max_batch_size"] = llm.max_num_seqs
    if llm.max_num_batched_tokens:
        # Longer prompts are refused unless they are computed in parts.
        options |= {"max_num_tokens": llm.max_num_batched_tokens, "enable_chunked_prefill": True}
    if llm.enforce_eager:
        options["cuda_graph_config"] = None
    return options


def model(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    spec, llm = served.spec, served.spec.llm or Llm()
    options = json.dumps(engine_options(spec, llm), sort_keys=True)
    return {
        "modelFormat": dict(_FORMAT),
        "runtime": RUNTIME,
        "protocolVersion": "v2",
        "storageUri": vllm.weights_uri(served, llm),
        "image": spec.image or context.tensorrt_llm_image,
        "env": [
            *env_of(spec),
            *vllm.home_env(),
            pod_template.hugging_face_env(served),
            {"name": _NAME, "value": served.model_name},
            {"name": _OPTIONS, "value": options},
        ],
        "ports": [dict(_PORT)],
        # With a writable root: it compiles kernels.
        "securityContext": pod_template.security(),
        **_probes(served),
    }


def _probes(served: ServedRevision) -> dict[str, Any]:
    if served.spec.scaling.kind == serving_spec.KNATIVE:
        return {"readinessProbe": pod_template.get(_HEALTH, periodSeconds=5)}
    return pod_template.probes(served, ready=_HEALTH, live=_HEALTH)


def serving_runtime(context: ManifestContext) -> Manifest:
    container = {
        "image": context.tensorrt_llm_image,
        "command": list(COMMAND),
        "args": ["--host=0.0.0.0", "--port=8080", f"--extra_llm_api_options={_OPTIONS_FILE}"],
        "env": vllm.home_env(),
        "ports": [dict(_PORT)],
    }
    return language_runtime.serving_runtime(
        context,
        name=RUNTIME,
        model_format=_FORMAT,
        container=container,
        metrics_path=METRICS_PATH,
    )
