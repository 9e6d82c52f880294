"""The gateway against an API server that misbehaves: a tiny real HTTP server."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from fleet.kube.domain import resource_types
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import (
    ClusterError,
    ObjectConflict,
    ObjectInvalid,
    Refused,
    Throttled,
    Unreachable,
    WatchExpired,
)
from fleet.kube.gateways.client import HttpKubeClient
from portal.core import counters

Answer = Callable[[BaseHTTPRequestHandler], None]


class Faulty:
    """Answers each request with the next of `answers`, and the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.requests.append(self.path)
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                answer(self)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def answer(status: int, body: object, **headers: str) -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        content = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return send


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def status_of(code: int, message: str, causes: list[dict[str, str]] | None = None) -> object:
    return {"kind": "Status", "code": code, "message": message, "details": {"causes": causes or []}}


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    server = Faulty()
    yield server
    server.server.shutdown()
    server.server.server_close()


def client_of(url: str, tmp_path: Path) -> HttpKubeClient:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return HttpKubeClient(Connection("faulty", "kubeconfig", kubeconfig_path=str(path)))


@pytest.fixture
def client(faulty: Faulty, tmp_path: Path) -> HttpKubeClient:
    return client_of(faulty.url, tmp_path)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, ObjectInvalid),
        (401, Refused),
        (403, Refused),
        (409, ObjectConflict),
        (410, WatchExpired),
        (422, ObjectInvalid),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
def test_each_status_is_its_own_error_with_the_servers_message(
    faulty: Faulty, client: HttpKubeClient, code: int, error: type[ClusterError]
) -> None:
    cause = {"field": "spec.replicas", "message": "must be positive", "reason": "Invalid"}
    faulty.answers = [answer(code, status_of(code, "in so many words", [cause]))]

    with pytest.raises(error, match="in so many words") as caught:
        client.get(resource_types.POD, "a", "b")

    assert [c.field for c in caught.value.causes] == ["spec.replicas"]
    assert len(faulty.requests) == 1


def test_throttled_says_when_to_retry(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer(429, status_of(429, "slow down"), Retry_After="7")]

    with pytest.raises(Throttled) as caught:
        client.get(resource_types.POD, "a", "b")

    assert caught.value.retry_after_seconds == 7


def test_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    client = client_of("http://127.0.0.1:1", tmp_path)

    with pytest.raises(Unreachable, match="Cluster faulty at http"):
        client.list_all(resource_types.NODE)


def _counted() -> dict[tuple[str, ...], int]:
    return counters.read(counters.CLUSTER_ERRORS)


@pytest.fixture
def uncounted() -> None:
    cache.clear()


@pytest.mark.usefixtures("uncounted")
def test_errors_of_the_cluster_are_counted_by_kind(faulty: Faulty, client: HttpKubeClient) -> None:
    statuses = (500, 503, 403, 429, 404, 409, 422)
    faulty.answers = [answer(code, status_of(code, "no")) for code in statuses]
    for _ in statuses:
        with pytest.raises(ClusterError):
            client.get(resource_types.POD, "a", "b")

    assert _counted() == {
        ("faulty", "refused"): 1,
        ("faulty", "throttled"): 1,
        ("faulty", "unreachable"): 2,
    }


@pytest.mark.usefixtures("uncounted")
def test_a_connection_that_fails_twice_is_one_error(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [hang_up]
    with pytest.raises(Unreachable):
        client.get(resource_types.POD, "a", "b")

    assert len(faulty.requests) == 2
    assert _counted() == {("faulty", "unreachable"): 1}


@pytest.mark.usefixtures("uncounted")
def test_a_pod_that_does_not_answer_is_no_error_of_the_cluster(
    faulty: Faulty, client: HttpKubeClient
) -> None:
    faulty.answers = [answer(503, status_of(503, "no endpoints"))]
    with pytest.raises(Unreachable):
        client.proxy_get("a", "b", 8002, "metrics")

    assert _counted() == {}


def test_without_valkey_the_error_is_raised_and_not_counted(tmp_path: Path, settings: Any) -> None:
    address = {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {"default": address}

    with pytest.raises(Unreachable, match="does not answer"):
        client_of("http://127.0.0.1:1", tmp_path).list_all(resource_types.NODE)


def test_slow_answer_is_given_up(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [slow]

    started = time.monotonic()
    with pytest.raises(Unreachable):
        client.proxy_get("a", "b", 8002, "metrics", seconds=0.2)

    assert time.monotonic() - started < 0.9


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_page_of_100_mb_is_not_read_to_its_end(
    faulty: Faulty, client: HttpKubeClient, *, is_zipped: bool
) -> None:
    """Also one that is small on the way."""
    sent = []

    def flood(handler: BaseHTTPRequestHandler) -> None:
        pages = 100 * [1024**2 * b"x"]
        body = [gzip.compress(b"".join(pages))] if is_zipped else pages
        handler.send_response(200)
        handler.send_header("Content-Length", str(sum(map(len, body))))
        if is_zipped:
            handler.send_header("Content-Encoding", "gzip")
        handler.end_headers()
        with contextlib.suppress(OSError):
            for part in body:
                handler.wfile.write(part)
                sent.append(len(part))

    faulty.answers = [flood, answer(200, "next")]

    with pytest.raises(ClusterError, match="larger than 16 MiB"):
        client.proxy_get("a", "b", 8002, "metrics")

    assert is_zipped or sum(sent) < 50 * 1024**2
    assert client.proxy_get("a", "b", 8002, "metrics") == '"next"'


def test_a_page_that_drips_in_is_given_up(faulty: Faulty, client: HttpKubeClient) -> None:
    """Each read is in time, the whole is not."""
    is_over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not is_over.wait(0.02):
                handler.wfile.write(b"x")
                handler.wfile.flush()

    faulty.answers = [drip]
    with pytest.raises(Unreachable, match="too slowly"):
        client.proxy_get("a", "b", 8002, "metrics", seconds=0.1)
    is_over.set()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (("Content-Length", "1000"), b"nv_inference_request_success 12"),
        (("Transfer-Encoding", "chunked"), b"40\r\nnv_inference_request_success 12"),
        (("Transfer-Encoding", "chunked"), b"3\r\nnv_\r\n"),
    ],
)
def test_a_page_that_ends_half_way_is_no_page(
    faulty: Faulty, client: HttpKubeClient, header: tuple[str, str], body: bytes
) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header(*header)
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    faulty.answers = [cut]

    with pytest.raises(Unreachable):
        client.proxy_get("a", "b", 8002, "metrics")


def test_pages_of_a_pod_come_on_one_connection(faulty: Faulty, client: HttpKubeClient) -> None:
    ports = set()

    def send(handler: BaseHTTPRequestHandler) -> None:
        ports.add(handler.client_address[1])
        answer(200, "page")(handler)

    faulty.answers = [send]

    for _ in range(3):
        assert client.proxy_get("a", "b", 8002, "metrics") == '"page"'

    assert len(ports) == 1


def test_closed_connection_is_tried_once_more(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [hang_up, answer(200, {"kind": "Pod"})]

    assert client.get(resource_types.POD, "a", "b") == {"kind": "Pod"}
    assert len(faulty.requests) == 2


def answer_no_json(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"no")


def test_answer_that_is_no_json_is_unreachable(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer_no_json]

    with pytest.raises(Unreachable, match="not JSON"):
        client.get(resource_types.POD, "a", "b")


def test_pages_are_followed_to_the_end(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [
        answer(200, {"metadata": {"resourceVersion": "5", "continue": "x"}, "items": [{"n": 1}]}),
        answer(200, {"metadata": {"resourceVersion": "9"}, "items": [{"n": 2}]}),
    ]

    listing = client.list_all(resource_types.POD)

    assert [item["n"] for item in listing.items] == [1, 2]
    assert listing.resource_version == "5"
    assert "continue=x" in faulty.requests[1]


def test_a_stalled_watch_is_given_up(
    faulty: Faulty, client: HttpKubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_event_then_silence(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        pod = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "6"}}
        handler.wfile.write(json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n")
        handler.wfile.flush()
        time.sleep(2)

    monkeypatch.setattr("fleet.kube.gateways.client._WATCH_GRACE_SECONDS", 0.3)
    faulty.answers = [one_event_then_silence]

    events = client.watch(resource_types.POD, resource_version="5", seconds=0)

    assert next(events).resource_version == "6"
    with pytest.raises(Unreachable):
        next(events)


def test_error_inside_a_watch_is_raised(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer(200, {"type": "ERROR", "object": status_of(410, "too old")})]

    with pytest.raises(WatchExpired, match="too old"):
        list(client.watch(resource_types.POD, resource_version="5"))
