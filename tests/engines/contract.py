"""The answers of a server of vLLM's API, with codes and words as vLLM 0.32 wrote them.

`make test-engines` holds the real engine to it, `make test` the stand-in of the embedded cluster. Both serve the
model `chat` with the adapter `sql` and a context of 512 tokens, without a parser of tool calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fleet.telemetry.domain import metrics_page
from fleet.telemetry.domain.counters import COUNTER_NAMES, PodReading
from tests import plain_http

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
_REQUEST: Final = "BadRequestError"
# Of a body that has not the form of the API's.
_FORM: Final = "Bad Request"
_TOKENS: Final = 4
_MESSAGES: Final = [{"role": "user", "content": "Hello"}]
_TOOL: Final = {"type": "function", "function": {"name": "weather", "parameters": {}}}


def chat_body(**changed: Any) -> dict[str, Any]:
    body = {"model": "chat", "messages": _MESSAGES, "max_tokens": _TOKENS, "temperature": 0}
    return {**body, **changed}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request and its refusal. `content` replaces the body's JSON."""

    name: str
    message: str
    kind: str = _REQUEST
    param: str | None = None
    status: int = 400
    path: str = CHAT
    body: dict[str, Any] = field(default_factory=chat_body)
    content: str | None = None
    media_type: str = "application/json"

    def sent(self) -> str:
        return json.dumps(self.body) if self.content is None else self.content


def _form(kind: str, where: str, message: str, given: str, more: str = "") -> dict[str, Any]:
    detail = f"{{'type': '{kind}', 'loc': '{where}', 'msg': '{message}', 'input': '{given}'{more}}}"
    return {"message": f"1 validation error:\n  {detail}", "kind": _FORM, "param": where}


def _of_parameter(name: str, message: str, value: object = None) -> dict[str, Any]:
    stated = "" if value is None else f", value={value}"
    return {"message": f"{message} (parameter={name}{stated})", "param": name}


REFUSALS: Final = (
    Refusal(
        "another model",
        "The model `other` does not exist. Valid aliases: chat.",
        kind="NotFoundError",
        param="model",
        status=404,
        body=chat_body(model="other"),
    ),
    Refusal(
        "tools without a parser",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        body=chat_body(tools=[_TOOL]),
    ),
    Refusal(
        "no messages",
        body={"model": "chat"},
        **_form("missing", "body.messages", "Field required", "<dict of 1 items>"),
    ),
    Refusal(
        "an empty conversation",
        "Cannot apply chat template to an empty conversation. Provide at least one message.",
        body=chat_body(messages=[]),
    ),
    Refusal(
        "a prompt longer than the context",
        body=chat_body(messages=[{"role": "user", "content": "x" * 600}]),
        **_of_parameter(
            "input_tokens",
            "This model's maximum context length is 512 tokens. However, your prompt contains at least 513 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt.",
            513,
        ),
    ),
    Refusal(
        "more tokens than the context",
        body=chat_body(max_tokens=1000),
        **_of_parameter(
            "max_tokens",
            "max_tokens=1000 cannot be greater than max_model_len=512. Please request fewer output tokens.",
            1000,
        ),
    ),
    Refusal(
        "no tokens",
        body=chat_body(max_tokens=0),
        **_of_parameter("max_tokens", "max_tokens must be at least 1, got 0.", 0),
    ),
    Refusal(
        "a number of tokens that is none",
        body=chat_body(max_tokens="x"),
        **_form(
            "int_parsing",
            "body.max_tokens",
            "Input should be a valid integer, unable to parse string as an integer",
            "x",
        ),
    ),
    Refusal(
        "a negative temperature",
        body=chat_body(temperature=-1),
        **_of_parameter("temperature", "temperature must be non-negative, got -1.0.", -1.0),
    ),
    Refusal(
        "a high temperature",
        body=chat_body(temperature=3),
        **_of_parameter("temperature", "temperature must be in [0, 2], got 3.0.", 3.0),
    ),
    Refusal(
        "options of a stream without one",
        body=chat_body(stream_options={"include_usage": True}),
        **_of_parameter("stream_options", "Stream options can only be defined when `stream=True`."),
    ),
    Refusal(
        "no prompt",
        path=COMPLETIONS,
        body={"model": "chat", "prompt": ""},
        **_of_parameter("prompt", "Either prompt or prompt_embeds must be provided and non-empty."),
    ),
    Refusal(
        "no JSON",
        content="{",
        **_form(
            "json_invalid",
            "body.1",
            "JSON decode error",
            "<dict of 0 items>",
            ", 'ctx': {'error': 'Expecting property name enclosed in double quotes'}",
        ),
    ),
    Refusal(
        "no JSON object",
        content="[]",
        **_form(
            "model_attributes_type",
            "body",
            "Input should be a valid dictionary or object to extract fields from",
            "<list of 0 items>",
        ),
    ),
    Refusal(
        "another media type",
        "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed",
        kind=_FORM,
        media_type="text/plain",
    ),
)
# Routes of other tasks than the model's.
MISSING_PATHS: Final = ("/v1/embeddings", "/v1/rerank", "/v1/load_lora_adapter", "/v1/nothing")


def check_refusal(url: str, refusal: Refusal) -> None:
    answer = plain_http.client.post(
        f"{url}{refusal.path}",
        content=refusal.sent(),
        headers={"Content-Type": refusal.media_type},
    )

    assert answer.status_code == refusal.status, answer.text
    assert answer.json() == {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param,
            "code": refusal.status,
        }
    }


def check_missing_paths(url: str) -> None:
    for path in MISSING_PATHS:
        answer = plain_http.client.post(f"{url}{path}", json={})
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"}), path
    answer = plain_http.client.get(f"{url}{CHAT}")
    assert (answer.status_code, answer.json()) == (405, {"detail": "Method Not Allowed"})


def check_answers(url: str) -> None:
    """A chat, without the model's name and with a field that the API does not have, and a completion."""
    plain = chat_body(unheard_of=True)
    del plain["model"]
    chat = _post(url, CHAT, plain)
    completion = _post(url, COMPLETIONS, {"prompt": "Hello", "max_tokens": _TOKENS, "seed": -1})

    assert (chat["object"], chat["model"]) == ("chat.completion", "chat")
    (choice,) = chat["choices"]
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)
    assert choice["finish_reason"] in {"length", "stop"}
    usage = chat["usage"]
    assert 1 <= usage["completion_tokens"] <= _TOKENS
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert (completion["object"], completion["model"]) == ("text_completion", "chat")
    assert isinstance(completion["choices"][0]["text"], str)


def check_models(url: str) -> None:
    models = plain_http.client.get(f"{url}/v1/models").json()

    shown = [(model["id"], model["parent"], model["max_model_len"]) for model in models["data"]]
    # An adapter's length is that of its base, which vLLM does not repeat.
    assert [(name, parent) for name, parent, _ in shown] == [("chat", None), ("sql", "chat")]
    assert shown[0][2] == 512


def check_adapter(url: str) -> None:
    assert _post(url, CHAT, chat_body(model="sql"))["model"] == "sql"


def check_stream(url: str) -> None:
    body = chat_body(stream=True, stream_options={"include_usage": True})
    events = list(read_events(url, body))

    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    *parts, usage = chunks
    assert parts[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    reasons = [part["choices"][0]["finish_reason"] for part in parts]
    assert reasons[:-1] == [None] * (len(parts) - 1)
    assert reasons[-1] in {"length", "stop"}
    assert usage["choices"] == []
    # Every token has come when it was made: beside the role there is an event for each.
    assert len(parts) > usage["usage"]["completion_tokens"]


def read_events(url: str, body: dict[str, Any]) -> Iterator[str]:
    with plain_http.client.stream("POST", f"{url}{CHAT}", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        for line in answer.iter_lines():
            if line:
                yield line.removeprefix("data: ")


def check_metrics(url: str) -> None:
    """The portal counts a chat by the metrics that the server exports, and a refusal as none of its failures."""
    before = _read(url)
    usage = _post(url, CHAT, chat_body())["usage"]
    plain_http.client.post(f"{url}{CHAT}", json=chat_body(max_tokens=0))
    after = _read(url)

    added = {
        name: getattr(after.counters, name) - getattr(before.counters, name)
        for name in COUNTER_NAMES
    }
    assert added["request_success"] == 1
    assert (added["request_failure"], added["request_aborted"]) == (0, 0)
    assert added["prompt_tokens"] == usage["prompt_tokens"]
    assert added["generation_tokens"] == usage["completion_tokens"]
    assert (added["first_tokens"], added["later_tokens"]) == (1, usage["completion_tokens"] - 1)
    assert added["request_duration_us"] >= added["first_token_us"] > 0
    assert (after.running_requests, after.pending_requests) == (0, 0)
    assert after.kv_cache_usage is not None
    assert after.first_token_times


def _read(url: str) -> PodReading:
    page = plain_http.client.get(f"{url}/metrics").text
    return metrics_page.read(page, models=(), at=datetime(2026, 11, 29, tzinfo=UTC))


def _post(url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = plain_http.client.post(f"{url}{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
