"""The engines, and what each of them can use."""

from __future__ import annotations

from typing import Final

KSERVE_TRITON: Final = "kserve-triton"
TRITON: Final = "triton"
KSERVE_VLLM: Final = "kserve-vllm"
TRITON_VLLM: Final = "triton-vllm"
LLM_SERVICE: Final = "llm-inference-service"
ENGINES: Final = (KSERVE_TRITON, TRITON, KSERVE_VLLM, TRITON_VLLM, LLM_SERVICE)
# Serve what the registry holds; the others serve language models with vLLM.
ONNX_ENGINES: Final = (KSERVE_TRITON, TRITON)
LLM_ENGINES: Final = (KSERVE_VLLM, TRITON_VLLM, LLM_SERVICE)
KSERVE_ENGINES: Final = (KSERVE_TRITON, KSERVE_VLLM)
# Plain Deployments, which the portal scales and guards itself.
PLAIN_ENGINES: Final = (TRITON, TRITON_VLLM)
