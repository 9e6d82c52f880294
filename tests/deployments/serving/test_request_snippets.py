"""Code that sends one request: each, when it is run, sends exactly this request to this address."""

from __future__ import annotations

import json
import shlex
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from deployments.serving.domain.request_snippets import RequestAddress, render_snippets
from slipway_client import inference
from slipway_client.types import Tensor

URL = "https://gateway.example/vision/detector/v2/models/detector/infer"
OPEN = RequestAddress(URL, "vision/detector")
KEYED = RequestAddress(URL, "vision/detector", "x-api-key", '-H "x-api-key: $KEY" ')
BODY: dict[str, Any] = {
    "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2.5, -3, 0.1]},
        {"name": "on", "datatype": "BOOL", "shape": [1], "data": [True]},
        {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ['it\'s "é"\n$KEY `id`']},
    ]
}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": False,
}
LONG: dict[str, Any] = {
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [3000], "data": [0] * 3000}]
}


def snippets(address: RequestAddress, body: dict[str, Any]) -> dict[str, str]:
    return {snippet.title: snippet.text for snippet in render_snippets(address, body)}


def split_command(text: str) -> list[str]:
    """Split as a shell does, which joins lines at a backslash."""
    return shlex.split(text.replace("\\\n", ""))


def run_python(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any]]:
    sent: list[tuple[str, dict[str, Any]]] = []

    def post(url: str, **options: Any) -> SimpleNamespace:
        sent.append((url, options))
        return SimpleNamespace(raise_for_status=lambda: None, json=dict)

    monkeypatch.setitem(sys.modules, "httpx", SimpleNamespace(post=post))
    monkeypatch.setenv("KEY", "secret")
    exec(text, {})
    return sent[0]


@pytest.mark.parametrize("body", [BODY, CHAT])
def test_curl_sends_the_request(body: dict[str, Any]) -> None:
    words = split_command(snippets(OPEN, body)["curl"])

    assert words[:2] == ["curl", "--json"]
    assert json.loads(words[2]) == body
    assert words[3:] == [URL]


def test_curl_sends_the_key() -> None:
    assert split_command(snippets(KEYED, BODY)["curl"])[3:] == ["-H", "x-api-key: $KEY", URL]


@pytest.mark.parametrize("body", [BODY, CHAT])
def test_python_sends_the_request(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_python(snippets(OPEN, body)["Python"], monkeypatch) == (URL, {"json": body})


def test_python_sends_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = run_python(snippets(KEYED, BODY)["Python"], monkeypatch)

    assert sent == (URL, {"json": BODY, "headers": {"x-api-key": "secret"}})


def test_javascript_sends_the_request() -> None:
    text = snippets(KEYED, BODY)["JavaScript"]

    declared, _, rest = text.removeprefix("const body = ").partition(";\nconst answer")
    assert json.loads(declared) == BODY
    assert f'fetch("{URL}"' in rest
    assert '"x-api-key": process.env.KEY }' in rest
    assert "body: JSON.stringify(body)" in rest
    assert "process.env" not in snippets(OPEN, BODY)["JavaScript"]


def test_slipway_call_sends_the_request() -> None:
    *command, argument = split_command(snippets(KEYED, BODY)["slipway call"])

    assert command == ["slipway", "call", "vision/detector"]
    dtypes = {"x": "FP32", "on": "BOOL", "text": "STRING"}
    tensors = [Tensor(name=name, dtype=dtype, dims=()) for name, dtype in dtypes.items()]
    inputs = [
        inference.encode(name, value, tensors) for name, value in json.loads(argument).items()
    ]
    sent = [
        {"name": one.name, "datatype": one.datatype, "shape": one.shape, "data": one.data}
        for one in inputs
    ]
    assert sent == BODY["inputs"]


@pytest.mark.parametrize(
    "body",
    [
        CHAT,
        {},
        {"inputs": []},
        {**BODY, "outputs": [{"name": "y"}]},
        {"inputs": [{**BODY["inputs"][0], "parameters": {}}]},
        {"inputs": [{**BODY["inputs"][0], "shape": [3, 2]}]},
        {"inputs": [{**BODY["inputs"][0], "shape": []}]},
        {"inputs": [{**BODY["inputs"][0], "shape": ["2", "2"]}]},
        {"inputs": [7]},
    ],
    ids=[str(number) for number in range(9)],
)
def test_what_slipway_call_cannot_send_has_no_such_command(body: dict[str, Any]) -> None:
    assert list(snippets(OPEN, body)) == ["curl", "Python", "JavaScript"]


def test_a_long_request_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "request.json").write_text(json.dumps(LONG))
    monkeypatch.chdir(tmp_path)

    texts = snippets(KEYED, LONG)

    assert list(texts) == ["curl", "Python", "JavaScript"]
    assert split_command(texts["curl"])[1:3] == ["--json", "@request.json"]
    assert run_python(texts["Python"], monkeypatch)[1]["json"] == LONG
    assert 'const body = await readFile("request.json", "utf8");' in texts["JavaScript"]
    assert all(len(text) < 600 for text in texts.values())
