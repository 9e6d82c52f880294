"""Many live metrics endpoints of Triton behind one port of 127.0.0.1: `python -m tests.benchmarks.triton_endpoints`.

Each path is a server of its own, whose counters grow by its requests per second. The page is the one that a real
Triton exported (tests/portal/monitoring/expositions/triton.txt). Prints its port, then answers until it is ended;
GET /count says how many pages it sent.
"""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

_EXPOSITION = Path(__file__).parents[1] / "portal/monitoring/expositions/triton.txt"
# What one request adds to each counter.
_EACH = {
    "nv_inference_request_success": 1,
    "nv_inference_count": 1,
    "nv_inference_exec_count": 1,
    "nv_inference_request_duration_us": 24_000,
    "nv_inference_queue_duration_us": 2_000,
    "nv_inference_compute_input_duration_us": 14,
    "nv_inference_compute_infer_duration_us": 21_900,
    "nv_inference_compute_output_duration_us": 36,
}


class Endpoints(asyncio.Protocol):
    count = 0

    def __init__(self, began: float, template: str) -> None:
        self._began, self._template = began, template
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received and self._transport is not None:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            body = str(Endpoints.count) if path == b"/count" else self._page(path)
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body.encode()
            )

    def _page(self, path: bytes) -> str:
        """10 to 29 requests per second, by path."""
        Endpoints.count += 1
        requests = 1 + int((time.monotonic() - self._began) * (10 + sum(path) % 20))
        return self._template.format(*(requests * each for each in _EACH.values()))


def template_of(text: str) -> str:
    """Counters of `_EACH` are places in that order, everything else stays as it was exported."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    for place, name in enumerate(_EACH):
        pattern = re.compile(rf"^({name}\{{\{{.*\}}\}}) \d+$", re.MULTILINE)
        escaped = pattern.sub(rf"\1 {{{place}}}", escaped)
    return escaped


async def serve() -> None:
    template = template_of(_EXPOSITION.read_text())
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Endpoints(began, template), "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
