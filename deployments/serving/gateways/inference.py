"""Requests to a served model through the cluster's gateway, bounded in time and size."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from portal.core import network_failures

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 1_000_000


class GatewayUnreachable(Exception):
    """An error for a missing response: the gateway refused the connection, timed out or closed it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request. `body` holds at most MAX_ANSWER_BYTES; `is_cut` means that there was more."""

    status: int
    body: bytes
    is_cut: bool
    milliseconds: float


def post_json(url: str, body: bytes) -> Answer:
    """Send a POST with a JSON body. Redirects are not followed. Raises GatewayUnreachable."""
    return post(url, body, {"Content-Type": "application/json"})


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Send a POST with these headers. Redirects are not followed. Raises GatewayUnreachable."""
    # Decompression could expand a small response far beyond the limit.
    sent = {**headers, "Accept-Encoding": "identity"}
    started = time.perf_counter()
    try:
        with (
            httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream("POST", url, content=body, headers=sent) as response,
        ):
            content, is_cut = _read(response, started + TIMEOUT_SECONDS)
    except httpx.HTTPError as error:
        raise GatewayUnreachable(network_failures.describe(error)) from error
    spent = (time.perf_counter() - started) * 1000
    return Answer(response.status_code, content, is_cut, spent)


def _read(response: httpx.Response, until: float) -> tuple[bytes, bool]:
    """Read the body until the deadline. httpx limits only each read; a gateway that sends slowly for ever is
    cut off here.
    """
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            return content[:MAX_ANSWER_BYTES], True
        if time.perf_counter() > until:
            raise GatewayUnreachable(f"no response within {TIMEOUT_SECONDS:g} s")
    return content, False
