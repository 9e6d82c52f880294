"""Servers in the place of a cluster's Prometheus, and how a cluster is registered with one."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from fleet.clusters.domain.prometheus import Endpoint, PrometheusError, QueryResult
from fleet.clusters.gateways import prometheus as gateway
from fleet.clusters.services.clusters import ClusterDraft

ONE = b'{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}'
Judge = Callable[[BaseHTTPRequestHandler, bytes], int]


class Server:
    """`judge` gives the status of an answer; `request_count` counts requests."""

    def __init__(self, judge: Judge, context: ssl.SSLContext | None = None) -> None:
        self.request_count = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.request_count += 1
                self.send_response(judge(self, body))
                self.send_header("Content-Length", str(len(ONE)))
                self.end_headers()
                self.wfile.write(ONE)

            def log_message(self, *_args: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}"


def run_query(endpoint: Endpoint) -> QueryResult | PrometheusError:
    [result] = gateway.query(endpoint, ["vector(1)"])
    return result


def draft(**changed: Any) -> ClusterDraft:
    values = {
        "name": "prod",
        "kind": "kubeconfig",
        "gateway_url": "https://models.example.com",
        "kubeconfig_path": "/etc/kubeconfig",
        "prometheus_url": "https://prometheus.example.com",
        **changed,
    }
    return ClusterDraft(**values)
