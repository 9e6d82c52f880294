"""Tokens of callers, counted by a real Envoy from answers of a language model, streams included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import HTTP_ROUTE, SECRET, SECURITY_POLICY
from slipway_localcluster.store import Store
from tests.fixtures.http_server import serving
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_api_keys import _POLICY, _secret, _serve
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

# What a model's text says is no usage: its quotes are escaped.
_TEXT = 'it says "total_tokens": 90000, and "usage"'


def _events(count: int, *, usage: int | None) -> list[bytes]:
    said: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": f"{_TEXT} {n}"}}]} for n in range(count)
    ]
    if usage is not None:
        said.append({"choices": [], "usage": {"prompt_tokens": 4, "total_tokens": usage}})
    return [f"data: {json.dumps(item)}\n\n".encode() for item in said] + [b"data: [DONE]\n\n"]


class _Model(BaseHTTPRequestHandler):
    """Answers as its request says: `plain`, or a stream with or without a usage."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_read = "accept-encoding" not in {name.lower() for name in self.headers}
        assert is_read or "is_unread" in wanted
        if "plain" in wanted:
            usage = {"prompt_tokens": 1, "total_tokens": wanted["plain"], "completion_tokens": 2}
            answer = {"choices": [{"message": {"content": _TEXT}}], "usage": usage}
            self._send("application/json", [json.dumps(answer).encode()])
        else:
            self._send("text/event-stream", _events(wanted["events"], usage=wanted.get("usage")))

    def _send(self, kind: str, parts: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # Cut anywhere: chunks end in the middle of numbers and names.
        whole = b"".join(parts)
        for start in range(0, len(whole), 37):
            part = whole[start : start + 37]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def language_model() -> Iterator[Endpoint]:
    with serving(_Model) as port:
        yield Endpoint("127.0.0.1", port)


def _route() -> dict[str, Any]:
    route = manifests.route({"one": 100})
    rule = route["spec"]["rules"][0]
    rule["matches"] = [
        {"path": {"type": "Exact", "value": f"/vision/digits/v1/{name}"}}
        for name in ("chat/completions", "rerank")
    ]
    rewrite = {"type": "ReplaceFullPath", "replaceFullPath": "/v1/chat/completions"}
    rule["filters"] = [{"type": "URLRewrite", "urlRewrite": {"path": rewrite}}]
    return route


def counted(page: str) -> dict[tuple[str, str], int]:
    return {
        (sample.labels["caller"], sample.labels["route"]): int(sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "envoy_slipway_caller_tokens_total"
    }


def test_tokens_of_answers_and_streams_are_counted_by_caller_whatever_their_text_says(
    tmp_path: Path, store: Store, language_model: Endpoint
) -> None:
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, language_model, "one")
    store.create(HTTP_ROUTE, _route())
    store.create(SECRET, _secret(**{"billing.1": "first", "search.2": "second"}))
    store.create(SECURITY_POLICY, _POLICY)
    gateway.reconcile()
    base = f"http://127.0.0.1:{port}/vision/digits/v1"
    assert gateway._files is not None
    stats = f"http://127.0.0.1:{gateway._files.stats_port}/stats/prometheus"

    with _envoy(tmp_path, port), httpx.Client(timeout=20) as client:

        def ask(key: str, path: str = "chat/completions", **body: int) -> int:
            headers = {"x-api-key": key}
            return client.post(f"{base}/{path}", json=body, headers=headers).status_code

        wait_for("the key works", lambda: ask("first", plain=7) == 200)
        page = client.get(stats).text
        before = counted(page).get(("billing.1", "httproute/vision/digits/rule/0"), 0)
        statuses = [
            ask("first", plain=1000),
            ask("first", events=3, usage=200),
            ask("second", events=11),
            ask("second", path="rerank", plain=5, is_unread=1),
            ask("third", plain=5),
        ]

        def seen() -> dict[str, int]:
            return {caller: value for (caller, _), value in counted(client.get(stats).text).items()}

        wait_for("all is counted", lambda: seen() == {"billing.1": before + 1200, "search.2": 11})
        filtered = client.get(stats, params={"filter": r"^slipway\.caller_tokens"}).text

    assert before == 7
    assert statuses == [200, 200, 200, 200, 401]
    assert set(counted(filtered)) == {
        ("billing.1", "httproute/vision/digits/rule/0"),
        ("search.2", "httproute/vision/digits/rule/0"),
    }
