"""The engines, and what each of them can use."""

from __future__ import annotations

from typing import Final, Literal, get_args

Engine = Literal["kserve-triton", "triton", "kserve-vllm", "triton-vllm", "llm-inference-service"]

KSERVE_TRITON: Final = "kserve-triton"
TRITON: Final = "triton"
KSERVE_VLLM: Final = "kserve-vllm"
TRITON_VLLM: Final = "triton-vllm"
LLM_SERVICE: Final = "llm-inference-service"
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)
# Serve what the registry holds; the others serve language models with vLLM.
ONNX_ENGINES: Final = (KSERVE_TRITON, TRITON)
LLM_ENGINES: Final = (KSERVE_VLLM, TRITON_VLLM, LLM_SERVICE)
KSERVE_ENGINES: Final = (KSERVE_TRITON, KSERVE_VLLM)
# Plain Deployments, which the portal scales and guards itself.
PLAIN_ENGINES: Final = (TRITON, TRITON_VLLM)
# With Triton's own metrics.
TRITON_ENGINES: Final = (*ONNX_ENGINES, TRITON_VLLM)
