"""The gateway to a syslog server: RFC 5424 messages, counted as in RFC 5425 and 6587, over TLS or TCP.

The standard library's handler writes the older format and has no TLS.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from portal.core import network_failures

_TIMEOUT_SECONDS: Final = 10
# Facility 13 (log audit), severity 5 (notice).
_PRIORITY: Final = 13 * 8 + 5


class SyslogError(Exception):
    """The server did not take all messages; the message names it."""


class BadAddress(ValueError):
    """The message says what to write."""


@dataclass(frozen=True, slots=True)
class SyslogTarget:
    host: str
    port: int
    is_tls: bool
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class SyslogMessage:
    """A message to a syslog server. `text` is ASCII without control characters."""

    at: str
    sender: str
    kind: str
    text: str


def parse(address: str, *, ca_file: str = "") -> SyslogTarget:
    """Raises BadAddress."""
    url = urlsplit(address)
    try:
        port = url.port
    except ValueError:
        port = None
    if url.scheme not in {"tls", "tcp"} or not url.hostname or not port or url.path.strip("/"):
        raise BadAddress(
            f"SLIPWAY_AUDIT_SYSLOG: {address!r} is not an address of a syslog server. "
            "Write tls://host:6514, or tcp://host:514 inside the network."
        )
    return SyslogTarget(url.hostname, port, is_tls=url.scheme == "tls", ca_file=ca_file)


def send(target: SyslogTarget, messages: Iterable[SyslogMessage]) -> None:
    """Return when the server has read everything: it closes the connection after we end our half. A server
    that closes with messages unread resets it. Raises SyslogError.
    """
    content = b"".join(map(frame, messages))
    try:
        with _connect(target) as stream:
            stream.sendall(content)
            _wait_until_read(stream)
    except OSError as error:
        raise SyslogError(
            f"{target.host}:{target.port}: {network_failures.describe(error)}"
        ) from error


def frame(message: SyslogMessage) -> bytes:
    head = f"<{_PRIORITY}>1 {message.at} {message.sender} slipway - {message.kind[:32] or '-'} -"
    body = f"{head} {message.text}".encode("ascii", "replace")
    return f"{len(body)} ".encode() + body


def _connect(target: SyslogTarget) -> socket.socket:
    plain = socket.create_connection((target.host, target.port), timeout=_TIMEOUT_SECONDS)
    if not target.is_tls:
        return plain
    try:
        context = ssl.create_default_context(cafile=target.ca_file or None)
        return context.wrap_socket(plain, server_hostname=target.host)
    except BaseException:
        plain.close()
        raise


def _wait_until_read(stream: socket.socket) -> None:
    if isinstance(stream, ssl.SSLSocket):
        # Some servers answer the end of TLS by closing the connection only.
        with contextlib.suppress(ssl.SSLEOFError):
            stream.unwrap().close()
        return
    stream.shutdown(socket.SHUT_WR)
    while stream.recv(4096):
        pass
