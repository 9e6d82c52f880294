"""A router like KServe's: `python -m slipway_localcluster.graph_router`.

As in KServe, bodies are forwarded unchanged, a step is called by POST, and of a request's headers only those
that match a pattern are forwarded: their name as Go writes it, `X-Api-Key`, is searched for it. Left out:
authorization, TLS, `serviceName` and chained responses (`data: $response`), which no pipeline of the portal
uses.
"""

import argparse
import http.client
import json
import re
import secrets
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from slipway_localcluster import gjson

Json = Mapping[str, Any]
# Status and body.
Answer = tuple[int, bytes]

Headers = Sequence[tuple[str, str]]

READY_PATH = "/readyz"
_HOST = "127.0.0.1"
# Go's server takes these out of the headers.
_OF_CONNECTION = frozenset({"Host", "Content-Length", "Transfer-Encoding", "Connection"})
_STEP_SECONDS = 60.0
_LARGEST_BODY = 64 * 2**20


class Failed(Exception):
    """The router itself responds, with this status."""

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(cause)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Call:
    """The body and headers that every step gets."""

    body: bytes
    headers: Headers


class Graph:
    """The nodes of one InferenceGraph. Thread-safe."""

    def __init__(self, spec: Json, patterns: Sequence[str] = ()) -> None:
        self._nodes: Json = spec["nodes"]
        self._patterns = _compiled(patterns)

    def answer(self, body: bytes, headers: Headers = ()) -> Answer:
        forwarded = [pair for pair in headers if self._is_forwarded(pair[0])]
        try:
            return self._node("root", _Call(body, forwarded))
        except Failed as failure:
            error = {"error": "Failed to process request", "cause": str(failure)}
            return failure.status, json.dumps(error).encode()

    def _is_forwarded(self, name: str) -> bool:
        is_ours = name in _OF_CONNECTION
        return not is_ours and any(pattern.search(name) for pattern in self._patterns)

    def _node(self, name: str, call: _Call) -> Answer:
        node = self._nodes[name]
        steps = node["steps"]
        kind = node["routerType"]
        if kind == "Splitter":
            return self._step(_draw(steps), call)
        if kind == "Switch":
            return self._switch(steps, call)
        if kind == "Ensemble":
            return self._ensemble(steps, call)
        return self._sequence(steps, call)

    def _step(self, step: Json, call: _Call) -> Answer:
        if step.get("nodeName"):
            return self._node(step["nodeName"], call)
        return post(step["serviceUrl"], call.body, call.headers)

    def _switch(self, steps: Sequence[Json], call: _Call) -> Answer:
        value = _parsed(call.body)
        for step in steps:
            if value is not None and gjson.exists(value, step.get("condition", "")):
                return self._step(step, call)
        raise Failed(HTTPStatus.NOT_FOUND, "None of the routes matched with the switch condition")

    def _ensemble(self, steps: Sequence[Json], call: _Call) -> Answer:
        """The first required step that fails is the response; failures of other steps are included."""
        answers = _call_concurrently(lambda step: self._step(step, call), steps)
        merged: dict[str, Any] = {}
        for index, (step, (status, content)) in enumerate(zip(steps, answers, strict=True)):
            value = _parsed(content)
            if not isinstance(value, dict):
                raise Failed(500, f"{step.get('name')} did not answer with a JSON object")
            if step.get("dependency") == "Hard" and not _is_good(status):
                return status, content
            merged[step.get("name") or str(index)] = value
        return HTTPStatus.OK, json.dumps(merged).encode()

    def _sequence(self, steps: Sequence[Json], call: _Call) -> Answer:
        status, content = int(HTTPStatus.OK), b""
        for step in steps:
            condition = step.get("condition")
            if condition:
                value = _parsed(content)
                if value is None:
                    raise Failed(500, "invalid response")
                if not gjson.exists(value, condition):
                    return HTTPStatus.OK, content
            status, content = self._step(step, call)
            if step.get("dependency") == "Hard" and not _is_good(status):
                return status, content
        return status, content


def _compiled(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """Compile the patterns. Invalid ones are left out, as KServe does."""
    compiled = []
    for pattern in patterns:
        with suppress(re.error):
            compiled.append(re.compile(pattern))
    return compiled


def _call_concurrently(call: Callable[[Json], Answer], steps: Sequence[Json]) -> list[Answer]:
    """Call on new threads, so that nested nodes never wait for each other's."""
    with ThreadPoolExecutor(len(steps)) as pool:
        return list(pool.map(call, steps))


def _draw(steps: Sequence[Json]) -> Json:
    point = secrets.randbelow(100)
    end = 0
    for step in steps:
        end += int(step["weight"])
        if point < end:
            return step
    raise Failed(500, "the weights are less than 100")


def post(url: str, body: bytes, headers: Headers = ()) -> Answer:
    """Send a POST as JSON, unless a header says what else it is. Raises Failed if there is no response."""
    split = urlsplit(url)
    kind = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
    connection = kind(split.netloc, timeout=_STEP_SECONDS)
    try:
        sent = {"Content-Type": "application/json"} | dict(headers)
        connection.request("POST", split.path, body, sent)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failed(500, f"{url}: {error}") from error
    finally:
        connection.close()


def _parsed(body: bytes) -> Any:
    with suppress(ValueError):
        return json.loads(body)
    return None


def _is_good(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, graph: Graph) -> None:
        super().__init__((_HOST, port), _Handler)
        self.graph = graph


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; without it each answer waits 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._send(HTTPStatus.OK if self.path == READY_PATH else HTTPStatus.NOT_FOUND, b"")

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
        else:
            self._send(*self.server.graph.answer(body, self._headers()))

    def _headers(self) -> list[tuple[str, str]]:
        """Return the headers named as Go writes them, which ends a part at each hyphen."""
        return [
            ("-".join(map(str.capitalize, name.split("-"))), value)
            for name, value in self.headers.items()
        ]

    def _body(self) -> bytes | None:
        """Return the body, chunked or not. None if it is too large."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            return self.rfile.read(length) if length <= _LARGEST_BODY else None
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if len(body) > _LARGEST_BODY:
                return None
        self.rfile.readline()
        return body

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if _parsed(body) is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, template: str, *values: object) -> None:
        """Log without a time, as other containers of the local cluster do."""
        sys.stderr.write(f"{template % values}\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="slipway_localcluster.graph_router")
    parser.add_argument("--graph-json", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--propagate-headers", default="")
    options = parser.parse_args(arguments)
    patterns = options.propagate_headers.split(",") if options.propagate_headers else []
    server = _Server(options.port, Graph(json.loads(options.graph_json), patterns))

    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    server.serve_forever(poll_interval=0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
