"""A cluster's Prometheus over its HTTP API: instant queries, bounded in time and size."""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import httpx

from fleet.clusters.domain import prometheus, prometheus_series
from fleet.clusters.domain.prometheus import (
    Endpoint,
    NotPrometheus,
    PrometheusDenied,
    PrometheusError,
    PrometheusUnreachable,
    QueryRefused,
    QueryResult,
)
from fleet.clusters.domain.prometheus_series import SeriesResult
from fleet.kube.gateways import credential_files
from fleet.kube.gateways.sigv4 import SignedRequests, SigningFailed
from portal.core import network_failures

TIMEOUT_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 2_000_000
_MAX_TOKEN_BYTES: Final = 16_000
_THREADS: Final = 8
# The service name of Amazon Managed Prometheus in signatures.
_SERVICE: Final = "aps"


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of a response. `most` is the size as people read it, `advice` what to do about a larger response."""

    seconds: float
    size: int
    most: str
    advice: str


_NUMBERS: Final = _Limits(
    TIMEOUT_SECONDS, MAX_ANSWER_BYTES, "2 MB", "query fewer series, for example with sum by (…)"
)
# 10,000 pods of Triton are 66 MB, at a scrape interval of 15 s.
_SERIES: Final = _Limits(10.0, 72_000_000, "72 MB", "limit the samples of a scrape (sampleLimit)")


def query(endpoint: Endpoint, queries: Sequence[str]) -> list[QueryResult | PrometheusError]:
    """Run the queries at the server's current time: a result or an error for each, in their order.

    Redirects are not followed and the environment's proxies are not used: only the address that an
    admin registered is contacted.
    """
    try:
        client = _client(endpoint)
    except PrometheusError as error:
        return [error for _ in queries]
    with client, ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda promql: _query(client, endpoint, promql), queries))


def query_series(endpoint: Endpoint, queries: Sequence[str]) -> list[SeriesResult]:
    """Run range selectors one after the other. Takes up to ten seconds and 72 MB, all together. Raises a
    PrometheusError where one of them has no result.
    """
    until, left = time.perf_counter() + _SERIES.seconds, _SERIES.size
    results = []
    with _client(endpoint) as client:
        for promql in queries:
            seconds = max(0.1, until - time.perf_counter())
            limits = replace(_SERIES, seconds=seconds, size=left)
            status, body = _post(client, endpoint, promql, limits)
            left -= len(body)
            results.append(prometheus_series.parse(status, body))
    return results


def version(endpoint: Endpoint) -> str:
    """Return the server's version; empty where it does not report one, as most compatible servers."""
    try:
        with _client(endpoint) as client:
            _, body = _send(client, "GET", _address(endpoint, "status/buildinfo"), {})
        reported = httpx.Response(200, content=body).json()["data"]["version"]
    except (PrometheusError, ValueError, KeyError, TypeError):
        return ""
    return str(reported)[:40]


def _client(endpoint: Endpoint) -> httpx.Client:
    return httpx.Client(
        timeout=TIMEOUT_SECONDS,
        trust_env=False,
        headers=_headers(endpoint),
        verify=_trust(endpoint),
        auth=_signed(endpoint),
    )


def _trust(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        return _context(endpoint.ca_pem)
    except (ssl.SSLError, ValueError) as error:
        raise PrometheusUnreachable("its certificates could not be read") from error


@functools.lru_cache(maxsize=256)
def _context(ca_pem: str) -> ssl.SSLContext:
    """Build the TLS context once: reading the public authorities takes longer than a query. A registered bundle
    replaces them.
    """
    if ca_pem:
        return ssl.create_default_context(cadata=ca_pem)
    return httpx.create_ssl_context(trust_env=False)


def _signed(endpoint: Endpoint) -> SignedRequests | None:
    if endpoint.signing is None:
        return None
    region, role_arn = endpoint.signing.region, endpoint.signing.role_arn
    try:
        return SignedRequests(service=_SERVICE, region=region, role_arn=role_arn)
    except SigningFailed as error:
        raise PrometheusDenied(str(error)) from error


def _query(client: httpx.Client, endpoint: Endpoint, promql: str) -> QueryResult | PrometheusError:
    try:
        return prometheus.parse(*_post(client, endpoint, promql, _NUMBERS))
    except PrometheusError as error:
        return error


def _post(
    client: httpx.Client, endpoint: Endpoint, promql: str, limits: _Limits
) -> tuple[int, bytes]:
    # Older releases read no fractions of a second.
    form = {"query": promql, "timeout": f"{round(limits.seconds * 1000)}ms"}
    return _send(client, "POST", _address(endpoint, "query"), form, limits)


def _send(
    client: httpx.Client, method: str, url: str, form: dict[str, str], limits: _Limits = _NUMBERS
) -> tuple[int, bytes]:
    until = time.perf_counter() + limits.seconds
    try:
        with client.stream(method, url, data=form or None, timeout=limits.seconds) as response:
            return response.status_code, _read(response, until, limits)
    except httpx.InvalidURL as error:
        raise NotPrometheus(f"{url} is not a valid address") from error
    except httpx.HTTPError as error:
        detail = network_failures.describe(error)
        raise PrometheusUnreachable(f"{url} does not answer: {detail}") from error


def _read(response: httpx.Response, until: float, limits: _Limits) -> bytes:
    """Limit the whole response: httpx's timeout holds for each read only."""
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > limits.size:
            raise QueryRefused(f"the response is larger than {limits.most}; {limits.advice}")
        if time.perf_counter() > until:
            raise PrometheusUnreachable(f"the response took longer than {limits.seconds:.0f} s")
    return bytes(content)


def _address(endpoint: Endpoint, path: str) -> str:
    return f"{endpoint.url.rstrip('/')}/api/v1/{path}"


def _headers(endpoint: Endpoint) -> dict[str, str]:
    # A compressed body could expand beyond the limit before it is cut off.
    headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
    if endpoint.token_path:
        headers["Authorization"] = f"Bearer {_token(endpoint.token_path)}"
    return headers


def _token(path: str) -> str:
    """Read at each query, because the file may have been replaced. The token appears in no message."""
    try:
        with credential_files.path_of(path).open("rb") as file:
            content = file.read(_MAX_TOKEN_BYTES + 1).strip()
    except credential_files.OutsideFolder as error:
        raise PrometheusDenied(f"its token file was rejected: {error}") from error
    except OSError as error:
        message = f"the file of its token, {path}, cannot be read: {error.strerror}"
        raise PrometheusDenied(message) from error
    token = content.decode("ascii", errors="replace")
    is_one_word = token.isascii() and token.isprintable() and " " not in token
    if not token or not is_one_word or len(content) > _MAX_TOKEN_BYTES:
        raise PrometheusDenied(f"its token file {path} contains no token")
    return token
