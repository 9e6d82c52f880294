"""Probe the connection to an API server step by step, so that a test names the step that fails."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from portal.core import network_failures

_SECONDS = 3.0
_PORTS = {"https": 443, "http": 80}

ADDRESS = "Address resolves"
TCP = "Port answers"
TLS = "TLS"


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """A step of a probe. `ok` is None if the step does not apply here, and `detail` says why."""

    step: str
    ok: bool | None
    detail: str


def probe_connection(
    host: str, *, ca_file: str | None, is_verified: bool, proxy: str
) -> list[ProbeStep]:
    """Probe the connection, and stop at the first step that fails."""
    if proxy:
        return [
            ProbeStep(ADDRESS, None, "Resolved by the proxy in the kubeconfig, not by the portal.")
        ]
    parts = urlsplit(host)
    name, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)
    try:
        infos = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError:
        return [ProbeStep(ADDRESS, ok=False, detail=f"could not resolve {name}")]
    addresses = sorted({str(info[4][0]) for info in infos})
    reached = [ProbeStep(ADDRESS, ok=True, detail=f"{name} resolves to {', '.join(addresses)}")]
    try:
        opened = socket.create_connection((name, port), timeout=_SECONDS)
    except OSError as error:
        detail = (
            f"{name} does not accept connections on port {port}: {network_failures.describe(error)}"
        )
        return [*reached, ProbeStep(TCP, ok=False, detail=detail)]
    with opened:
        reached.append(ProbeStep(TCP, ok=True, detail=f"port {port} accepts connections"))
        if parts.scheme == "https":
            reached.append(_shake_hands(opened, name, ca_file, is_verified=is_verified))
    return reached


def _shake_hands(
    opened: socket.socket, name: str, ca_file: str | None, *, is_verified: bool
) -> ProbeStep:
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if not is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(opened, server_hostname=name) as secured:
            version = secured.version()
    except ssl.SSLCertVerificationError as error:
        detail = f"the certificate of {name} is not trusted: {error.verify_message}"
        return ProbeStep(TLS, ok=False, detail=detail)
    except OSError as error:
        return ProbeStep(
            TLS,
            ok=False,
            detail=f"TLS handshake with {name} failed: {network_failures.describe(error)}",
        )
    if is_verified:
        return ProbeStep(TLS, ok=True, detail=f"{version}, certificate trusted")
    return ProbeStep(TLS, ok=None, detail=f"{version}, certificate not verified")
