"""The external metrics API of the test cluster, answered from a real Prometheus.

What an HPA asks for there is, with prometheus-adapter, a series and labels of it.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.cluster.certificates import Authority
from tests.cluster.kubectl import Kubectl

_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_ROOT = f"/apis/{_GROUP}/{_VERSION}"
_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{_GROUP}/{_VERSION}",
    "resources": [
        {
            "name": "externalmetrics",
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
    ],
}


Read = Callable[[str], float | None]


@contextmanager
def serving(admin: Kubectl, folder: Path, read: Read) -> Iterator[None]:
    """A server of this process answers for the group with what `read` says of a query."""
    server = _server(read, folder)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with registered(admin, server.server_port):
            yield
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def registered(admin: Kubectl, port: int) -> Iterator[None]:
    """The API server sends the requests of this group to a port of this machine."""
    try:
        admin.apply(_registration(port))
        admin.run("wait", "--for=condition=Available", f"apiservice/{_VERSION}.{_GROUP}")
        yield
    finally:
        admin.run("delete", "apiservice", f"{_VERSION}.{_GROUP}", "--ignore-not-found")


def _server(read: Read, folder: Path) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            answer = _answer(read, address.path, parse_qs(address.query))
            body = json.dumps(answer or {}).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """One line per poll would drown what a failing test has to say."""

    pair = Authority(folder).sign("external-metrics")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def _answer(read: Read, path: str, query: Mapping[str, list[str]]) -> dict[str, Any] | None:
    if path == _ROOT:
        return _RESOURCES
    parts = path.removeprefix(f"{_ROOT}/namespaces/").split("/")
    if not path.startswith(f"{_ROOT}/namespaces/") or len(parts) != 2:
        return None
    namespace, name = parts
    selector = query.get("labelSelector", [""])[0]
    labels = dict(pair.split("=", 1) for pair in selector.split(",") if pair)
    matchers = "".join(f',{label}="{value}"' for label, value in labels.items())
    value = read(f'sum({name}{{namespace="{namespace}"{matchers}}})')
    item = {
        "metricName": name,
        "metricLabels": labels,
        "timestamp": "2026-01-01T00:00:00Z",
        "value": f"{round((value or 0) * 1000)}m",
    }
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "metadata": {},
        "items": [] if value is None else [item],
    }


def _registration(port: int) -> list[dict[str, Any]]:
    """A Service by name may stand for this machine; Endpoints must not hold a loopback address."""
    service = {"namespace": "kube-system", "name": "external-metrics"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{_VERSION}.{_GROUP}"},
            "spec": {
                "group": _GROUP,
                "version": _VERSION,
                "service": {**service, "port": port},
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
    ]
