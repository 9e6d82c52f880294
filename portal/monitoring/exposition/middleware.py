"""Counts each request and answers /metrics.

First of all middleware, because Prometheus scrapes a pod by its address: no name of ALLOWED_HOSTS, and no TLS where a
load balancer ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from portal.monitoring.exposition import access, requests
from portal.monitoring.exposition.collectors import StateCollector

PATH: Final = "/metrics"
_READS: Final = ("GET", "HEAD")


class MetricsMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path == PATH and access.is_offered():
            return _answer(request)
        began = time.perf_counter()
        response = self.get_response(request)
        requests.observe(request, response, seconds=time.perf_counter() - began)
        return response


def _answer(request: HttpRequest) -> HttpResponse:
    if not access.is_allowed(request):
        headers = {"WWW-Authenticate": "Bearer"}
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED, headers=headers)
    if request.method not in _READS:
        return HttpResponseNotAllowed(_READS)
    registry = CollectorRegistry()
    registry.register(requests.collector())
    registry.register(StateCollector())
    headers = {"Cache-Control": "no-store"}
    body = generate_latest(registry)
    return HttpResponse(body, content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=headers)
