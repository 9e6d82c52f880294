"""A cluster's Prometheus over its HTTP API: instant queries, bounded in time and size."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

from fleet.clusters.domain import prometheus
from fleet.clusters.domain.prometheus import (
    Answer,
    Endpoint,
    NotPrometheus,
    PrometheusDenied,
    PrometheusError,
    PrometheusUnreachable,
    QueryRefused,
)
from fleet.kube.gateways import credential_files
from fleet.kube.gateways.sigv4 import SignedRequests, SigningFailed

TIMEOUT_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 2_000_000
_MAX_TOKEN_BYTES: Final = 16_000
_THREADS: Final = 8
# Amazon Managed Prometheus, as AWS names it in signatures.
_SERVICE: Final = "aps"


def query(endpoint: Endpoint, queries: Sequence[str]) -> list[Answer | PrometheusError]:
    """An answer or what is the matter, for each query in its place; the time is the server's now.

    Redirects are not followed, and proxies of the environment are not used: the address is the
    one that an admin registered, and nothing else.
    """
    try:
        client = _client(endpoint)
    except PrometheusError as error:
        return [error for _ in queries]
    with client, ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda promql: _query(client, endpoint, promql), queries))


def version(endpoint: Endpoint) -> str:
    """As it says of itself; empty where this is not told, as by most servers that are compatible."""
    try:
        with _client(endpoint) as client:
            _, body = _send(client, "GET", _address(endpoint, "status/buildinfo"), {})
        found = httpx.Response(200, content=body).json()["data"]["version"]
    except (PrometheusError, ValueError, KeyError, TypeError):
        return ""
    return str(found)[:40]


def _client(endpoint: Endpoint) -> httpx.Client:
    return httpx.Client(
        timeout=TIMEOUT_SECONDS,
        trust_env=False,
        headers=_headers(endpoint),
        verify=_trust(endpoint),
        auth=_signed(endpoint),
    )


def _trust(endpoint: Endpoint) -> bool | ssl.SSLContext:
    """Where there is a bundle, it is the only one that is trusted."""
    if not endpoint.ca_pem:
        return True
    try:
        return ssl.create_default_context(cadata=endpoint.ca_pem)
    except (ssl.SSLError, ValueError) as error:
        raise PrometheusUnreachable("its certificates could not be read") from error


def _signed(endpoint: Endpoint) -> SignedRequests | None:
    if endpoint.signing is None:
        return None
    region, role_arn = endpoint.signing.region, endpoint.signing.role_arn
    try:
        return SignedRequests(service=_SERVICE, region=region, role_arn=role_arn)
    except SigningFailed as error:
        raise PrometheusDenied(str(error)) from error


def _query(client: httpx.Client, endpoint: Endpoint, promql: str) -> Answer | PrometheusError:
    form = {"query": promql, "timeout": f"{TIMEOUT_SECONDS:g}s"}
    try:
        status, body = _send(client, "POST", _address(endpoint, "query"), form)
        return prometheus.read(status, body)
    except PrometheusError as error:
        return error


def _send(client: httpx.Client, method: str, url: str, form: dict[str, str]) -> tuple[int, bytes]:
    until = time.perf_counter() + TIMEOUT_SECONDS
    try:
        with client.stream(method, url, data=form or None) as response:
            return response.status_code, _read(response, until)
    except httpx.InvalidURL as error:
        raise NotPrometheus(f"{url} is not a valid address: {error}") from error
    except httpx.HTTPError as error:
        words = str(error) or type(error).__name__
        raise PrometheusUnreachable(f"{url} does not answer: {words}") from error


def _read(response: httpx.Response, until: float) -> bytes:
    """httpx times each read; an answer that drips for ever is cut off here."""
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            words = (
                "the response is larger than 2 MB; query fewer series, for example with sum by (…)"
            )
            raise QueryRefused(words)
        if time.perf_counter() > until:
            raise PrometheusUnreachable(f"the response took longer than {TIMEOUT_SECONDS:g} s")
    return content


def _address(endpoint: Endpoint, path: str) -> str:
    return f"{endpoint.url.rstrip('/')}/api/v1/{path}"


def _headers(endpoint: Endpoint) -> dict[str, str]:
    # Unpacking could make much of little before it is cut off.
    headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
    if endpoint.token_path:
        headers["Authorization"] = f"Bearer {_token(endpoint.token_path)}"
    return headers


def _token(path: str) -> str:
    """Read at every question, because it may have been replaced. It is in no message."""
    try:
        with credential_files.path_of(path).open("rb") as file:
            found = file.read(_MAX_TOKEN_BYTES + 1).strip()
    except credential_files.OutsideFolder as error:
        raise PrometheusDenied(f"its token file was rejected: {error}") from error
    except OSError as error:
        words = f"the file of its token, {path}, cannot be read: {error.strerror}"
        raise PrometheusDenied(words) from error
    token = found.decode("ascii", errors="replace")
    is_one_word = token.isascii() and token.isprintable() and " " not in token
    if not token or not is_one_word or len(found) > _MAX_TOKEN_BYTES:
        raise PrometheusDenied(f"its token file {path} contains no token")
    return token
