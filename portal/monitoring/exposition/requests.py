"""Requests that the web processes answered, by view. With several processes each has files of its own, which an answer
sums up: portal/web_server.py says where.
"""

from __future__ import annotations

from http import HTTPMethod
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal import web_server

_BUCKETS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS: Final = frozenset(HTTPMethod)
# Of this process alone.
_OWN: Final = CollectorRegistry()
_REQUESTS: Final = Counter(
    "slipway_http_requests",
    "Requests that were answered.",
    ("view", "method", "status"),
    registry=_OWN,
)
_SECONDS: Final = Histogram(
    "slipway_http_request_duration_seconds",
    "From the first byte read to the answer's headers.",
    ("view",),
    buckets=_BUCKETS,
    registry=_OWN,
)


def observe(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    """Labels have few values, whatever a client sends."""
    view = _view_of(request)
    method = request.method if request.method in _METHODS else "other"
    _REQUESTS.labels(view, method, str(response.status_code)).inc()
    _SECONDS.labels(view).observe(seconds)


def collector() -> Collector:
    """Return a collector of the requests of all processes of this web server."""
    folder = web_server.folder()
    every: Any = MultiProcessCollector
    return every(None, path=folder) if folder else _OWN


def _view_of(request: HttpRequest) -> str:
    match = request.resolver_match
    if match is not None:
        return match.view_name or "unnamed"
    return "static" if request.path.startswith(settings.STATIC_URL) else "unmatched"
