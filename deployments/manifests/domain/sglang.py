"""SGLang's OpenAI server under KServe, on one node.

Names and values are those of SGLang 0.5.10 to 0.5.23 (sglang/srt/server_args.py, environ.py and
entrypoints/http_server.py).
"""

from __future__ import annotations

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

RUNTIME: Final = "slipway-sglang"
COMMAND: Final = ("python3", "-m", "sglang.launch_server")
# Of a runtime of our own: KServe chooses none by it.
_FORMAT: Final = {"name": "huggingface", "version": "1"}
_PORT: Final = {"name": "http1", "containerPort": 8080, "protocol": "TCP"}
_DTYPES: Final = {"original": "auto", "fp16": "float16", "bf16": "bfloat16"}
# What vLLM calls fp8; SGLang has the full names only.
_KV_CACHE_DTYPES: Final = {"fp8": "fp8_e4m3"}
# Answers 503 until the first request of its own was served.
_READY: Final = "/health"
# Generates a token when the server is idle, and waits up to 20 seconds for the scheduler.
_LIVE: Final = "/health_generate"
_LIVENESS: Final = {"periodSeconds": 30, "timeoutSeconds": 25, "failureThreshold": 3}
_SERVER_ENV: Final = (
    # /health generates a token too by default, which takes longer than a probe may.
    {"name": "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "value": "false"},
    # GPU time of forward passes; without it the metrics do not say how busy the GPU is.
    {"name": "SGLANG_ENABLE_METRICS_DEVICE_TIMER", "value": "true"},
)


def engine_args(spec: ServingSpec, llm: Llm) -> list[str]:
    """Return the command-line options of the engine, without the model's path. SGLang chooses options that are
    not set.
    """
    options = {
        "dtype": _DTYPES[spec.precision],
        "kv-cache-dtype": _KV_CACHE_DTYPES.get(llm.kv_cache_dtype, llm.kv_cache_dtype),
        "tp-size": llm.tensor_parallel,
        "dp-size": llm.data_parallel if llm.data_parallel > 1 else None,
        "mem-fraction-static": llm.mem_fraction_static or None,
        "context-length": llm.max_model_len or None,
        "max-running-requests": llm.max_num_seqs or None,
        "chunked-prefill-size": llm.max_num_batched_tokens or None,
        "quantization": None if llm.quantization == "auto" else llm.quantization,
    }
    switches = {
        "disable-radix-cache": not llm.prefix_caching,
        "disable-cuda-graph": llm.enforce_eager,
    }
    return [
        *(f"--{name}={value}" for name, value in options.items() if value is not None),
        *(f"--{name}" for name, is_on in switches.items() if is_on),
        *_adapter_args(llm),
    ]


def _adapter_args(llm: Llm) -> list[str]:
    if not llm.adapters:
        return []
    return [
        "--enable-lora",
        # A request without an adapter takes a place too.
        f"--max-loras-per-batch={len(llm.adapters) + 1}",
        f"--max-lora-rank={llm.max_lora_rank}",
        "--lora-paths",
        *llm.adapters,
    ]


def model(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    spec, llm = served.spec, served.spec.llm or Llm()
    args = [
        f"--model-path={vllm.MODELS}",
        f"--served-model-name={served.model_name}",
        *engine_args(spec, llm),
    ]
    return {
        "modelFormat": dict(_FORMAT),
        "runtime": RUNTIME,
        "protocolVersion": "v2",
        "storageUri": vllm.weights_uri(served, llm),
        "image": spec.image or context.sglang_image,
        "args": args,
        "env": [*env_of(spec), *_env(), pod_template.hugging_face_env(served)],
        "ports": [dict(_PORT)],
        # With a writable root: it compiles kernels and counts metrics in files.
        "securityContext": pod_template.security(),
        **_probes(served),
    }


def _env() -> list[dict[str, str]]:
    return [*vllm.home_env(), *map(dict, _SERVER_ENV)]


def _probes(served: ServedRevision) -> dict[str, Any]:
    if served.spec.scaling.kind == serving_spec.KNATIVE:
        return {"readinessProbe": pod_template.get(_READY, periodSeconds=5)}
    probes = pod_template.probes(served, ready=_READY, live=_LIVE)
    return {**probes, "livenessProbe": pod_template.get(_LIVE, **_LIVENESS)}


def serving_runtime(context: ManifestContext) -> Manifest:
    container = {
        "image": context.sglang_image,
        "command": list(COMMAND),
        "args": ["--host=0.0.0.0", "--port=8080", "--enable-metrics"],
        "env": _env(),
        "ports": [dict(_PORT)],
    }
    return language_runtime.serving_runtime(
        context, name=RUNTIME, model_format=_FORMAT, container=container
    )
