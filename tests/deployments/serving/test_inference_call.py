from __future__ import annotations

import pytest

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.serving.domain.inference_call import call_of

SIGNATURE = Signature(
    inputs=(Tensor("x", "FP32", (-1, 2)),), outputs=(Tensor("y", "FP32", (-1, 2)),)
)


@pytest.mark.parametrize(
    ("engine", "path", "port", "first"),
    [
        ("kserve-triton", "v2/models/m/infer", 8080, "inputs"),
        ("triton", "v2/models/m/infer", 8080, "inputs"),
        ("triton-vllm", "v2/models/m/generate", 8080, "text_input"),
        ("kserve-vllm", "v1/chat/completions", 8080, "model"),
        ("kserve-sglang", "v1/chat/completions", 8080, "model"),
        ("kserve-tensorrt-llm", "v1/chat/completions", 8080, "model"),
        ("llm-inference-service", "v1/chat/completions", 8000, "model"),
    ],
)
def test_each_engine_gets_a_request_of_its_own_protocol(
    engine: str, path: str, port: int, first: str
) -> None:
    call = call_of(engine=engine, model="m", signature=SIGNATURE)

    assert (call.path, call.port, next(iter(call.body))) == (path, port, first)
    assert call.is_chat is path.startswith("v1/")


def test_a_chat_request_names_the_served_model_and_is_short() -> None:
    body = call_of(engine="kserve-vllm", model="m", signature=SIGNATURE).body

    assert (body["model"], body["max_tokens"]) == ("m", 64)
    assert [message["role"] for message in body["messages"]] == ["user"]
