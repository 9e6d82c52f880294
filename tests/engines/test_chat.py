"""The rendered pod of a text generator with an adapter, on the real vLLM."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engines import contract, random_models, rendered
from tests.engines.contract import REFUSALS, Refusal
from tests.engines.running import Engine, running

_SCHEMA = {
    "type": "object",
    "properties": {"is_pod": {"type": "boolean"}},
    "required": ["is_pod"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("chat")
    model = random_models.write_llama(folder / "model")
    adapter = random_models.write_adapter(folder / "adapter")
    spec = rendered.spec_with(lora_adapters="sql=org/sql")
    with running(spec, folder, model=model, adapter=adapter) as engine:
        yield engine


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_it_refuses_with_these_words(chat: Engine, refusal: Refusal) -> None:
    contract.check_refusal(chat.url, refusal)


@pytest.mark.parametrize(
    "check",
    [
        contract.check_answers,
        contract.check_models,
        contract.check_adapter,
        contract.check_stream,
        contract.check_metrics,
        contract.check_missing_paths,
    ],
)
def test_it_answers_as_the_contract_says(chat: Engine, check: Callable[[str], None]) -> None:
    check(chat.url)


def test_an_adapter_answers_otherwise_than_its_base(chat: Engine) -> None:
    texts = {
        name: _text(chat.post(contract.CHAT, contract.chat_body(model=name, max_tokens=16)).json())
        for name in ("chat", "sql")
    }

    assert texts["chat"] != texts["sql"]


def test_an_answer_follows_a_json_schema(chat: Engine) -> None:
    """Random weights would never write this."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA}}
    body = contract.chat_body(response_format=form, max_tokens=200, seed=1)

    answer = json.loads(_text(chat.post(contract.CHAT, body).json()))

    assert list(answer) == ["is_pod"]
    assert isinstance(answer["is_pod"], bool)


def test_it_finishes_a_stream_after_sigterm(chat: Engine) -> None:
    """The last test of the module: it ends the server."""
    body = contract.chat_body(stream=True, max_tokens=40, ignore_eos=True)
    reasons: list[str | None] = []
    for event in contract.read_events(chat.url, body):
        if not reasons:
            chat.process.send_signal(signal.SIGTERM)
        if event != "[DONE]":
            reasons.append(json.loads(event)["choices"][0]["finish_reason"])

    assert reasons[-1] == "length"
    # The role, and an event a token.
    assert len(reasons) >= 40
    assert chat.process.wait(120) == 0


def _text(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])
