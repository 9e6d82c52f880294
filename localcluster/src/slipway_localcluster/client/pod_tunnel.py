"""The way of an API server to the pods of this machine: HTTP CONNECT over a Unix socket.

Pods have addresses of a network that exists nowhere, as behind a network plugin, because an API server
proxies to no loopback address. Its egress selector connects to them through this tunnel.
"""

import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.controllers.processes import LOCALHOST
from slipway_localcluster.kinds import POD

# Opens a connection to `host:port`; None where nothing may be reached. Raises OSError.
Dial = Callable[[str], socket.socket | None]

_TIMEOUT_SECONDS = 10
_CHUNK = 1 << 16


class ConnectProxy:
    """Serves on daemon threads from `start` to `stop`."""

    def __init__(self, path: Path, dial: Dial) -> None:
        path.unlink(missing_ok=True)
        self._server = _Server(str(path), _Connection)
        self._server.dial = dial
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="connect-proxy", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def pod_tunnel(api: ClusterApi, path: Path) -> ConnectProxy:
    """Open a tunnel to ports of pods, and to nothing else of this machine."""

    def dial(address: str) -> socket.socket | None:
        port = _real_port(api, address)
        if port is None:
            return None
        return socket.create_connection((LOCALHOST, port), timeout=_TIMEOUT_SECONDS)

    return ConnectProxy(path, dial)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    dial: Dial


class _Connection(socketserver.StreamRequestHandler):
    server: _Server
    # What follows the request belongs to the other side.
    rbufsize = 0

    def handle(self) -> None:
        method, _, rest = self.rfile.readline().decode("latin-1").partition(" ")
        while self.rfile.readline().strip():
            pass
        try:
            other = self.server.dial(rest.partition(" ")[0]) if method == "CONNECT" else None
        except OSError:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        if other is None:
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
            return
        with other:
            other.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            answers = threading.Thread(target=_copy, args=(other, self.connection), daemon=True)
            answers.start()
            _copy(self.connection, other)
            answers.join()


def _real_port(api: ClusterApi, address: str) -> int | None:
    """Return the port of this machine behind `ip:port` of a pod; None when nothing listens there now."""
    host, _, port = address.rpartition(":")
    for pod in api.list(POD):
        if (pod.get("status") or {}).get("podIP") == host:
            annotations = pod["metadata"].get("annotations") or {}
            text = annotations.get(f"{PORT_ANNOTATION}{port}")
            if text is not None:
                return int(text)
    return None


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side ends; the other then sees the end as well."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
