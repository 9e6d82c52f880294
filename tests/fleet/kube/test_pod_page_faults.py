"""Pages of pods that are slow, endless, or end half-way."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest

from fleet.kube.domain.errors import (
    ClusterError,
    Unreachable,
)
from fleet.kube.gateways.client import HttpKubeClient
from tests.fleet.kube.faulty_server import (
    Faulty,
    answer,
    client,
    faulty,
    slow,
)

__all__ = ["client", "faulty"]


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
