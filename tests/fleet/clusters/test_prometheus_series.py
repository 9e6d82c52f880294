"""Range selectors on servers that hang, answer too much or half, within one limit for all queries of a reading."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from fleet.clusters.domain.prometheus import (
    Endpoint,
    NotPrometheus,
    PrometheusDenied,
    PrometheusUnreachable,
    QueryRefused,
)
from fleet.clusters.gateways import prometheus as gateway

ONE = {"metric": {"__name__": "r", "pod": "a"}, "values": [[1, "1"]]}
BODY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [ONE]}}).encode()


@contextmanager
def answering(status: int, body: bytes, *, size: int | None = None) -> Iterator[Endpoint]:
    """`size` is what it says that it sends; one that says more than it sends never ends."""
    done = Event()

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if size is None else size))
            self.end_headers()
            self.wfile.write(body)
            if size is not None and size > len(body):
                done.wait(30)

        def log_message(self, *_args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield Endpoint(f"http://127.0.0.1:{server.server_address[1]}")
    done.set()
    server.shutdown()


def limit(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    monkeypatch.setattr(gateway, "_SERIES", replace(gateway._SERIES, **changed))


def test_each_query_has_its_series() -> None:
    with answering(200, BODY) as endpoint:
        results = gateway.query_series(endpoint, ["a[2m]", "b[2m]"])
    assert [[one.labels["pod"] for one in result.series] for result in results] == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (503, b"", PrometheusUnreachable),
        (403, b"", PrometheusDenied),
        (200, BODY[:-20], NotPrometheus),
        (200, b"<html>", NotPrometheus),
        (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}', QueryRefused),
        (400, b'{"status":"error","errorType":"bad_data","error":"no"}', QueryRefused),
    ],
)
def test_a_reading_is_refused_with_the_first_query_that_fails(
    status: int, body: bytes, error: type[Exception]
) -> None:
    with answering(status, body) as endpoint, pytest.raises(error):
        gateway.query_series(endpoint, ["a[2m]", "b[2m]"])


def test_one_that_hangs_is_left_after_the_time_of_all_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, seconds=0.3)
    began = time.monotonic()
    with answering(200, BODY[:30], size=10_000) as endpoint, pytest.raises(PrometheusUnreachable):
        gateway.query_series(endpoint, ["a[2m]"] * 4)
    assert time.monotonic() - began < 5


def test_the_limit_of_size_is_one_for_all_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, size=len(BODY) * 2)
    with answering(200, BODY) as endpoint:
        assert len(gateway.query_series(endpoint, ["a[2m]"] * 2)) == 2
        with pytest.raises(QueryRefused, match="larger than 72 MB; limit the samples of a scrape"):
            gateway.query_series(endpoint, ["a[2m]"] * 3)
