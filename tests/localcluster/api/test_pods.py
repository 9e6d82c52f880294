"""Logs and the proxy, with a fake pod."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from slipway_localcluster import bootstrap
from slipway_localcluster.errors import NotFound
from slipway_localcluster.kinds import POD
from slipway_localcluster.logs import LogLine
from slipway_localcluster.server import build_app
from slipway_localcluster.store import Store
from slipway_localcluster.watch import Hub

_PODS = "/api/v1/namespaces/default/pods"
_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("X-Path", self.path)
        self.send_header("X-Has-Token", str("Authorization" in self.headers))
        self.end_headers()
        self.wfile.write(body.upper())

    def log_message(self, format: str, *args: object) -> None:
        return


class _Log:
    """Three lines, and what `write_more` brings after each time that it is read."""

    def __init__(self, write_more: Callable[[], str]) -> None:
        self.is_closed = False
        self._text = "one\ntwo\nthree\n"
        self._write_more = write_more

    def lines(self) -> list[LogLine]:
        lines = [LogLine(_AT, line) for line in self._text.splitlines(keepends=True)]
        self._text += self._write_more()
        return lines

    def has_ended(self) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True


class _Pods:
    """A pod `p` with a log of three lines and container port 8080."""

    def __init__(self, port: int) -> None:
        self.opened: list[_Log] = []
        self.write_more: Callable[[], str] = str
        self._port = port

    def open_log(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        is_previous: bool = False,
    ) -> _Log:
        log = _Log(self.write_more)
        self.opened.append(log)
        return log

    def pod_address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        if port != 8080:
            raise NotFound(f"no port {port}")
        return "127.0.0.1", self._port


class Caller:
    """Calls the application without a server."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._send("GET", path, b""))

    def post(self, path: str, *, content: bytes) -> httpx.Response:
        return asyncio.run(self._send("POST", path, content))

    async def _send(self, method: str, path: str, content: bytes) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        headers = {"Authorization": "Bearer t"}
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            return await client.request(method, path, content=content, headers=headers)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cluster.db")


@pytest.fixture
def pods() -> Iterator[_Pods]:
    pod_server = HTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=pod_server.serve_forever)
    thread.start()
    yield _Pods(pod_server.server_port)
    pod_server.shutdown()
    thread.join()
    pod_server.server_close()


@pytest.fixture
def client(store: Store, pods: _Pods) -> Caller:
    bootstrap.seed(store)
    ports = [{"containerPort": 8080}]
    spec = {"containers": [{"name": "c", "image": "i", "ports": ports}]}
    pod = store.create(POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    store.replace_status(POD, pod | {"status": {"phase": "Succeeded"}})
    return Caller(build_app(store, Hub(store), access=pods, token="t"))


def test_log_is_complete_or_limited_to_its_last_lines(client: Caller) -> None:
    assert client.get(f"{_PODS}/p/log").text == "one\ntwo\nthree\n"
    assert client.get(f"{_PODS}/p/log?tailLines=1").text == "three\n"
    assert client.get(f"{_PODS}/p/log?tailLines=0").text == ""
    assert client.get(f"{_PODS}/p/log?limitBytes=6").text == "one\ntw"
    assert client.get(f"{_PODS}/p/log?tailLines=1&timestamps=true").text == (
        "2026-01-02T03:04:05.678901000Z three\n"
    )
    assert client.get(f"{_PODS}/p/log?sinceTime=2026-01-02T03:04:06Z").text == ""
    assert client.get(f"{_PODS}/p/log?sinceTime=2026-01-02T03:04:05Z").text == "one\ntwo\nthree\n"
    assert client.get(f"{_PODS}/p/log?sinceSeconds=60").text == ""


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("tailLines=x", 400, "tailLines: not a number: x"),
        ("sinceTime=yesterday", 400, "sinceTime: not a time: yesterday"),
        (
            "tailLines=-1",
            422,
            'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            "limitBytes=0&sinceSeconds=0",
            422,
            'PodLogOptions "p" is invalid: [limitBytes: Invalid value: 0: must be greater than 0, '
            "sinceSeconds: Invalid value: 0: must be greater than 0]",
        ),
        (
            "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z",
            422,
            'PodLogOptions "p" is invalid: : Forbidden: at most one of `sinceTime` or `sinceSeconds` may be '
            "specified",
        ),
    ],
)
def test_options_that_select_nothing_are_refused(
    client: Caller, query: str, status: int, message: str
) -> None:
    answer = client.get(f"{_PODS}/p/log?{query}")

    assert (answer.status_code, answer.json()["message"]) == (status, message)


def test_followed_log_ends_with_its_pod(client: Caller) -> None:
    assert client.get(f"{_PODS}/p/log?follow=true&tailLines=2").text == "two\nthree\n"


def test_followed_log_has_the_last_lines_of_a_deleted_pod(
    client: Caller, store: Store, pods: _Pods
) -> None:
    running = store.get(POD, "default", "p") | {"status": {"phase": "Running"}}
    store.replace_status(POD, running)

    def end_pod() -> str:
        if store.find(POD, "default", "p") is None:
            return ""
        store.delete(POD, "default", "p", grace_period_seconds=0)
        return "Signal (15) received\n"

    pods.write_more = end_pod

    followed = client.get(f"{_PODS}/p/log?follow=true&tailLines=1")

    assert followed.text == "three\nSignal (15) received\n"
    assert [log.is_closed for log in pods.opened] == [True]


@pytest.mark.parametrize("name", ["p", "p:8080", "http:p:8080"])
def test_proxy_forwards_the_request_without_the_token(client: Caller, name: str) -> None:
    answer = client.post(f"{_PODS}/{name}/proxy/v2/infer?a=b", content=b"body")

    assert (answer.status_code, answer.text) == (201, "BODY")
    assert answer.headers["X-Path"] == "/v2/infer?a=b"
    assert answer.headers["X-Has-Token"] == "False"


@pytest.mark.parametrize(
    ("name", "status"), [("p:9", 404), ("none:8080", 404), ("https:p:8080", 400), ("p:web", 400)]
)
def test_proxy_to_an_unknown_pod_or_port_is_refused(client: Caller, name: str, status: int) -> None:
    assert client.post(f"{_PODS}/{name}/proxy/", content=b"").status_code == status
