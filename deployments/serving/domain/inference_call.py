"""The inference request of each engine: path, port and an example body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain import example_requests
from deployments.registry.domain.signatures import CLASS_NAMES, Signature
from deployments.spec.domain.engines import LLM_SERVICE, OPENAI_ENGINES, TRITON_VLLM

MAX_PREFILLED_LENGTH: Final = 250_000
_QUESTION: Final = "Say hello in one short sentence."
_MAX_TOKENS: Final = 64
_HTTP_PORT: Final = 8080
_LLM_SERVICE_PORT: Final = 8000


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a served model. `path` has no leading slash; `port` is the pod's. `class_names` are in the
    order of the scores.
    """

    path: str
    body: dict[str, Any]
    protocol: str
    port: int = _HTTP_PORT
    class_names: tuple[str, ...] = ()

    @property
    def is_chat(self) -> bool:
        return self.path.startswith("v1/")


def prefill_body(call: Call) -> str:
    """Return the example body as text. Empty where it is too large for a form."""
    body = json.dumps(call.body)
    return body if len(body) <= MAX_PREFILLED_LENGTH else ""


def call_of(*, engine: str, model: str, signature: Signature) -> Call:
    if engine in OPENAI_ENGINES:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": _QUESTION}],
            "max_tokens": _MAX_TOKENS,
        }
        port = _LLM_SERVICE_PORT if engine == LLM_SERVICE else _HTTP_PORT
        return Call("v1/chat/completions", body, "OpenAI's chat", port)
    if engine == TRITON_VLLM:
        parameters = {"stream": False, "temperature": 0, "max_tokens": _MAX_TOKENS}
        body = {"text_input": _QUESTION, "parameters": parameters}
        return Call(f"v2/models/{model}/generate", body, "Triton's generate")
    body = example_requests.infer_request(signature)
    names = tuple(signature.facts.get(CLASS_NAMES, ()))
    return Call(f"v2/models/{model}/infer", body, "the v2 inference protocol", class_names=names)
