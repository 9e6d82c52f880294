"""The part of a kubelet's API that an API server uses: the logs of its pods, over HTTPS with a client certificate."""

import functools
import select
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from slipway_localcluster import tls
from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers.local_pods import LocalPods
from slipway_localcluster.controllers.processes import LOCALHOST
from slipway_localcluster.errors import ApiError, BadRequest, NotFound
from slipway_localcluster.kinds import POD
from slipway_localcluster.logs import OPTIONS, LogReader, OpenLog, read_options

# Of the certificates that API servers present to kubelets.
_GROUPS = frozenset({"system:masters", "kubeadm:cluster-admins"})
_FOLLOW_SECONDS = 0.3
_TIMEOUT_SECONDS = 30


class KubeletApi:
    """Serves on daemon threads from `start` to `stop`."""

    def __init__(self, api: ClusterApi, data_dir: Path, client_authority: str) -> None:
        """`client_authority`: the certificates, as PEM, that sign those of the API server."""
        credentials = tls.certify_server(data_dir / "kubelet-tls")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(credentials.certificate, credentials.key)
        context.load_verify_locations(cadata=client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
        self._server = _Server((LOCALHOST, 0), _Handler)
        self._server.api = api
        self._server.pods = LocalPods(api, data_dir)
        self._server.stopping = threading.Event()
        # The handshake is the connection's own thread's: one that never ends it holds up nobody else.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kubelet-api", daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: ClusterApi
    pods: LocalPods
    stopping: threading.Event

    def handle_error(self, *_: object) -> None:
        """Ignore a client that went away, or has no certificate."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT_SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            parts = self._log_parts()
        except ApiError as error:
            self._answer(error.status, error.message)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain")
        # The log ends with the connection.
        self.send_header("Connection", "close")
        self.end_headers()
        for part in parts:
            self.wfile.write(part)
            self.wfile.flush()

    def _log_parts(self) -> Iterator[bytes]:
        """Raises ApiError before the first part."""
        if not _groups_of(self.connection) & _GROUPS:
            raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", "only the API server reads logs")
        address = urlsplit(self.path)
        parts = [unquote(part) for part in address.path.split("/")]
        if len(parts) != 5 or parts[1] != "containerLogs":
            raise NotFound(f"{address.path} is not served by this node agent")
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        unknown = query.keys() - OPTIONS
        if unknown:
            raise BadRequest(f"not supported by this node agent: {', '.join(sorted(unknown))}")
        return self._read(parts[2], parts[3], parts[4], query)

    def _read(
        self, namespace: str, name: str, container: str, query: dict[str, str]
    ) -> Iterator[bytes]:
        options = read_options(query, pod=name, now=datetime.now(UTC))

        log = self.server.pods.open_log(
            namespace, name, container=container, is_previous=options.is_previous
        )
        reader = LogReader(options)
        if options.is_followed:
            return self._follow(log, reader, functools.partial(self._has_ended, namespace, name))
        with closing(log):
            return iter([reader.next(log.lines(), is_last=True)])

    def _follow(
        self,
        log: OpenLog,
        reader: LogReader,
        has_pod_ended: Callable[[], bool],
    ) -> Iterator[bytes]:
        with closing(log):
            while True:
                # Before the log, so that the last lines of an ended pod are not lost.
                is_last = log.has_ended() or has_pod_ended()
                yield reader.next(log.lines(), is_last=is_last)
                if is_last or reader.is_full or self._has_left():
                    return

    def _has_left(self) -> bool:
        """Return whether the client has left, after a moment. A client sends nothing more, so what can be read is
        its end.
        """
        readable, _, _ = select.select([self.connection], [], [], _FOLLOW_SECONDS)
        return bool(readable) or self.server.stopping.is_set()

    def _has_ended(self, namespace: str, name: str) -> bool:
        pod = self.server.api.find(POD, namespace, name)
        return pod is None or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    def _answer(self, status: int, message: str) -> None:
        """Send a plain-text error as a kubelet does. The API server makes a Status of it."""
        body = message.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the API server has an audit log of its own."""


def _groups_of(connection: ssl.SSLSocket) -> frozenset[str]:
    """Return the organisations of the client's certificate, which Kubernetes takes for groups."""
    subject: Any = (connection.getpeercert() or {}).get("subject", ())
    return frozenset(
        value for part in subject for name, value in part if name == "organizationName"
    )
