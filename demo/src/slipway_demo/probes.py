"""Readiness probes of the demo's parts."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from pathlib import Path

_SECONDS = 2.0
# Without proxies: everything listens on this machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def port(number: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", number), _SECONDS):
            return True
    except OSError:
        return False


def valkey(number: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", number), _SECONDS) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7).startswith(b"+PONG")
    except OSError:
        return False


def answers(url: str) -> bool:
    try:
        with _DIRECT.open(url, timeout=_SECONDS) as answer:
            return bool(answer.status < 400)
    except (http.client.HTTPException, OSError):
        return False


def kubernetes(kubeconfig: Path, number: int) -> bool:
    """Whether the API server is ready and has written the kubeconfig."""
    if not kubeconfig.exists():
        return False
    # The certificate is not verified here; the portal verifies it.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", number, timeout=_SECONDS, context=context)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()


def celery() -> bool:
    from celery import current_app  # noqa: PLC0415  only after Django and its environment are set
    from kombu.exceptions import OperationalError  # noqa: PLC0415  as above

    try:
        return bool(current_app.control.ping(timeout=0.5))
    except OperationalError:
        return False
