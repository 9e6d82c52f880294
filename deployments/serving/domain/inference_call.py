"""How a revision is asked: the path behind its address, and a first body; each engine its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deployments.domain import examples
from deployments.domain.signatures import Signature
from deployments.domain.spec_engines import KSERVE_VLLM, LLM_SERVICE, TRITON_VLLM

_QUESTION: Final = "Say hello in one short sentence."
_MOST_TOKENS: Final = 64
_HTTP_PORT: Final = 8080
_LLM_SERVICE_PORT: Final = 8000


@dataclass(frozen=True, slots=True)
class Call:
    """`path` without a slash before it; `port` is the pod's own."""

    path: str
    body: dict[str, Any]
    protocol: str
    port: int = _HTTP_PORT

    @property
    def is_chat(self) -> bool:
        return self.path.startswith("v1/")


def call_of(*, engine: str, model: str, signature: Signature) -> Call:
    if engine in (KSERVE_VLLM, LLM_SERVICE):
        body = {
            "model": model,
            "messages": [{"role": "user", "content": _QUESTION}],
            "max_tokens": _MOST_TOKENS,
        }
        port = _LLM_SERVICE_PORT if engine == LLM_SERVICE else _HTTP_PORT
        return Call("v1/chat/completions", body, "OpenAI's chat", port)
    if engine == TRITON_VLLM:
        parameters = {"stream": False, "temperature": 0, "max_tokens": _MOST_TOKENS}
        body = {"text_input": _QUESTION, "parameters": parameters}
        return Call(f"v2/models/{model}/generate", body, "Triton's generate")
    body = examples.infer_request(signature)
    return Call(f"v2/models/{model}/infer", body, "the v2 inference protocol")
