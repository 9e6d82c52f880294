"""Files and answers of HTTP servers that models are imported from.

The portal runs inside the network, so an address from a user could make it call internal hosts: every
address, also of a redirect, is resolved, checked, and then connected to as it was checked. Servers
that the operator configured may be anywhere. Messages name hosts and paths, never queries.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx

from deployments.imports.domain.addresses import redacted_url
from deployments.imports.domain.errors import SourceChanged, SourceRefused, SourceUnavailable
from portal.core import network_failures
from portal.core.public_addresses import is_public

MAX_ANSWER_BYTES: Final = 32 * 2**20
ANSWER_SECONDS: Final = 60
_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DENIED: Final = frozenset({401, 403})
_MISSING: Final = frozenset({404, 410})
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """An open body. `start` is where it begins, `size_bytes` the size of the whole file; -1: not said."""

    start: int
    size_bytes: int
    validator: str
    response: httpx.Response

    def chunks(self) -> Iterator[bytes]:
        host = self.response.request.headers["Host"]
        try:
            yield from self.response.iter_raw()
        except httpx.HTTPError as error:
            raise SourceUnavailable(
                f"{host} stopped in the middle of the file ({network_failures.describe(error)})."
            ) from error


@dataclass(frozen=True, slots=True)
class _Target:
    """An address that was checked, and the IP address to connect to."""

    url: str
    ip: str

    @property
    def parts(self) -> tuple[str, str, int]:
        split = urlsplit(self.url)
        return split.scheme, split.hostname or "", split.port or _PORTS[split.scheme]


@dataclass(slots=True)
class RemoteFiles:
    """A client for files of HTTP servers. `private_hosts` may be inside the network; HTTP without TLS is for
    these only. `headers` go to `origin` alone, never to where it redirects. `read_seconds` is the longest
    silence of a server.
    """

    private_hosts: Collection[str] = ()
    origin: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    read_seconds: float = 30
    _clients: dict[tuple[str, str, int, str], httpx.Client] = field(default_factory=dict)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    @contextmanager
    def open(self, url: str, *, start: int = 0) -> Iterator[RemoteFile]:
        """Yield the bytes from `start`, or from 0 where the server ignores ranges."""
        with self._get(url, {"Range": f"bytes={start}-"}) as response:
            yield _remote_file(response, start)

    def describe(self, url: str) -> tuple[int, str]:
        """Return the size and validator, without reading the file: a pre-signed URL may permit GET only."""
        with self._get(url, {"Range": "bytes=0-0"}) as response:
            file = _remote_file(response, 0)
            return file.size_bytes, file.validator

    def get_json(self, url: str) -> tuple[Any, Mapping[str, str]]:
        """Return the parsed answer and its headers."""
        with self._get(url, {"Accept": "application/json"}) as response:
            body, headers = _read_answer(response, url), response.headers
        try:
            return json.loads(body), headers
        except (ValueError, RecursionError) as error:
            raise SourceRefused(f"{redacted_url(url)} did not answer with JSON.") from error

    def get_bytes(self, url: str) -> bytes:
        with self._get(url, {}) as response:
            return _read_answer(response, url)

    @contextmanager
    def _get(self, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Follow redirects, each checked as the first address. Raises SourceError unless it succeeds."""
        for _ in range(_MAX_REDIRECTS + 1):
            with self._send(self._checked(url), headers) as response:
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    url = _redirected(url, response.headers["location"])
                    continue
                _require_success(response, url)
                yield response
                return
        raise SourceRefused(f"{redacted_url(url)} redirects too often.")

    @contextmanager
    def _send(self, target: _Target, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        scheme, host, port = target.parts
        client = self._client(scheme, host, port, target.ip)
        netloc = urlsplit(target.url).netloc
        own = self.headers if self.origin and _origin(target.url) == _origin(self.origin) else {}
        request = client.build_request(
            "GET",
            httpx.URL(target.url).copy_with(host=target.ip, fragment=None),
            headers={"Host": netloc, "Accept-Encoding": "identity", **headers, **own},
            extensions={"sni_hostname": host},
        )
        try:
            response = client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise SourceUnavailable(
                f"{host} does not answer ({network_failures.describe(error)})."
            ) from error
        try:
            yield response
        finally:
            response.close()

    def _client(self, scheme: str, host: str, port: int, ip: str) -> httpx.Client:
        """Return the client of a host. Each host has its own, because a kept connection is verified for one
        name only.
        """
        key = (scheme, host, port, ip)
        if key not in self._clients:
            timeout = httpx.Timeout(connect=10, read=self.read_seconds, write=30, pool=10)
            self._clients[key] = httpx.Client(
                timeout=timeout, trust_env=False, verify=_trust(), follow_redirects=False
            )
        return self._clients[key]

    def _checked(self, url: str) -> _Target:
        split = _split(url)
        host = split.hostname or ""
        is_own = bool(self.origin) and _origin(url) == _origin(self.origin)
        is_private = is_own or host in self.private_hosts
        if split.scheme != "https" and not is_private:
            raise SourceRefused(
                f"{redacted_url(url)} is not HTTPS. Only HTTPS can be imported from."
            )
        addresses = _resolve(host, split.port or _PORTS[split.scheme])
        if not is_private and not all(is_public(address) for address in addresses):
            raise SourceRefused(
                f"{host} is inside the portal's own network. A platform admin can allow it in "
                "SLIPWAY_IMPORT_PRIVATE_HOSTS."
            )
        return _Target(url, addresses[0])


@functools.lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """Return the public authorities, or those of SSL_CERT_FILE."""
    return httpx.create_ssl_context()


def _split(url: str) -> Any:
    try:
        split = urlsplit(url)
        is_complete = split.scheme in _PORTS and bool(split.hostname) and split.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or split.username or split.password:
        raise SourceRefused("A redirect leads to an address that cannot be imported from.")
    return split


def _origin(url: str) -> tuple[str, str, int]:
    split = urlsplit(url)
    return split.scheme, split.hostname or "", split.port or _PORTS.get(split.scheme, 0)


def _redirected(url: str, location: str) -> str:
    try:
        target = urljoin(url, location)
        is_downgrade = urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https"
    except ValueError as error:
        raise SourceRefused(f"{redacted_url(url)} redirects to no valid address.") from error
    if is_downgrade:
        raise SourceRefused(f"{redacted_url(url)} redirects to an address without HTTPS.")
    return target


def _resolve(host: str, port: int) -> list[str]:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(f"The host name {host} could not be resolved.") from error
    addresses = [str(row[4][0]) for row in rows]
    # IPv4 first: not every network routes IPv6.
    return sorted(
        dict.fromkeys(addresses),
        key=lambda item: ipaddress.ip_address(item.partition("%")[0]).version,
    )


def _require_success(response: httpx.Response, url: str) -> None:
    status, shown = response.status_code, redacted_url(url)
    if status in (200, 206):
        if response.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise SourceRefused(f"{shown} sends the file compressed, so it cannot be verified.")
        return
    if status in _DENIED:
        raise SourceRefused(
            f"{shown} denied access ({status}). A pre-signed URL may have expired: start a new import "
            "with a fresh one.",
            status=status,
        )
    if status in _MISSING:
        raise SourceRefused(f"{shown} does not exist ({status}). Check the address.", status=status)
    if status in (408, 425, 429) or status >= 500:
        raise SourceUnavailable(
            f"{shown} is not available now ({status}).", retry_after=_retry_after(response)
        )
    raise SourceRefused(f"{shown} answered with status {status}.", status=status)


def _read_answer(response: httpx.Response, url: str) -> bytes:
    until = time.monotonic() + ANSWER_SECONDS
    body = bytearray()
    try:
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise SourceRefused(f"{redacted_url(url)} answered with too much.")
            if time.monotonic() > until:
                raise SourceUnavailable(f"{redacted_url(url)} is too slow.")
    except httpx.HTTPError as error:
        raise SourceUnavailable(f"{redacted_url(url)} stopped in its answer.") from error
    return bytes(body)


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _remote_file(response: httpx.Response, start: int) -> RemoteFile:
    headers = response.headers
    validator = headers.get("etag") or headers.get("last-modified") or ""
    if response.status_code == 206:
        first, total = _content_range(headers.get("content-range", ""))
        if first != start:
            raise SourceChanged("The server sent another part of the file than was requested.")
        return RemoteFile(start, total, validator[:300], response)
    length = headers.get("content-length", "")
    size = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else -1
    return RemoteFile(0, size, validator[:300], response)


def _content_range(text: str) -> tuple[int, int]:
    """Read the first byte and the total of "bytes 0-9/100". -1 for a number that is not there."""
    unit, _, rest = text.strip().partition(" ")
    span, _, total = rest.partition("/")
    first = span.partition("-")[0]
    is_read = unit.lower() == "bytes" and first.isascii() and first.isdigit() and len(first) < 19
    size = int(total) if total.isascii() and total.isdigit() and len(total) < 19 else -1
    return (int(first) if is_read else -1, size)
