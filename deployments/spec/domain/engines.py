"""The engines, and what each of them can use."""

from __future__ import annotations

from typing import Final, Literal, get_args

Engine = Literal[
    "kserve-triton",
    "triton",
    "kserve-vllm",
    "kserve-sglang",
    "kserve-tensorrt-llm",
    "triton-vllm",
    "llm-inference-service",
]

KSERVE_TRITON: Final = "kserve-triton"
TRITON: Final = "triton"
KSERVE_VLLM: Final = "kserve-vllm"
KSERVE_SGLANG: Final = "kserve-sglang"
KSERVE_TENSORRT_LLM: Final = "kserve-tensorrt-llm"
TRITON_VLLM: Final = "triton-vllm"
LLM_SERVICE: Final = "llm-inference-service"
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)
# Serve what the registry holds; the others serve language models.
ONNX_ENGINES: Final = (KSERVE_TRITON, TRITON)
LLM_ENGINES: Final = (
    KSERVE_VLLM,
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    TRITON_VLLM,
    LLM_SERVICE,
)
VLLM_ENGINES: Final = (KSERVE_VLLM, TRITON_VLLM, LLM_SERVICE)
# Load the weights from their pod and answer OpenAI's API.
OPENAI_ENGINES: Final = (KSERVE_VLLM, KSERVE_SGLANG, KSERVE_TENSORRT_LLM, LLM_SERVICE)
# Run several copies of a model in a pod, and LoRA adapters that a request names as its model.
COPYING_ENGINES: Final = (KSERVE_VLLM, KSERVE_SGLANG, LLM_SERVICE)
KSERVE_ENGINES: Final = (KSERVE_TRITON, KSERVE_VLLM, KSERVE_SGLANG, KSERVE_TENSORRT_LLM)
# Plain Deployments, which the portal scales and guards itself.
PLAIN_ENGINES: Final = (TRITON, TRITON_VLLM)
# Report neither waiting requests nor their KV cache: TensorRT-LLM 1.2, and Triton's vLLM backend, whose metrics are
# counters and histograms (triton-inference-server/vllm_backend, src/utils/metrics.py).
WITHOUT_QUEUE_METRICS: Final = (KSERVE_TENSORRT_LLM, TRITON_VLLM)
# Count requests whose client left; SGLang counts them as finished, Triton not at all.
ABORT_COUNTING_ENGINES: Final = (KSERVE_VLLM, KSERVE_TENSORRT_LLM, LLM_SERVICE)
# With Triton's own metrics.
TRITON_ENGINES: Final = (*ONNX_ENGINES, TRITON_VLLM)
# How long pods may take to end: a generated text takes minutes. Of others longer than Triton's own exit timeout, and
# shorter than the two minutes' notice of a spot node.
LANGUAGE_MODEL_GRACE_SECONDS: Final = 600
OTHER_GRACE_SECONDS: Final = 35


def default_grace_seconds(engine: str) -> int:
    """Return the termination grace where none is stated. 0: OTHER_GRACE_SECONDS."""
    return LANGUAGE_MODEL_GRACE_SECONDS if engine in LLM_ENGINES else 0
