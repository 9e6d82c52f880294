"""Liveness and readiness probes of the web process.

A load balancer and the node ask with the pod's address as the host, so they are answered before any middleware that asks
for one of SLIPWAY_ALLOWED_HOSTS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import resolve
from django.views.decorators.http import require_safe

logger = logging.getLogger(__name__)

_SECONDS = 1.0
_PATHS: Final = ("/healthz", "/readyz")


class ProbesMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path not in _PATHS:
            return self.get_response(request)
        match = request.resolver_match = resolve(request.path)
        response: HttpResponseBase = match.func(request)
        return response


@require_safe
def is_running(request: HttpRequest) -> HttpResponse:
    return _plain({"process": "ok"}, HTTPStatus.OK)


@require_safe
def is_ready(request: HttpRequest) -> HttpResponse:
    """Respond with 503 if a part does not respond without which no page is answered; the others are only named.

    No details are given, because the endpoint is public. A broker that is away would take all web pods out of the
    Service together, though wake-ups and limits are all that it is needed for.
    """
    needed = {name: _check(name, check) for name, check in _NEEDED.items()}
    reported = {name: _check(name, check) for name, check in _REPORTED.items()}
    is_fine = all(result == "ok" for result in needed.values())
    status = HTTPStatus.OK if is_fine else HTTPStatus.SERVICE_UNAVAILABLE
    return _plain({**needed, **reported}, status)


def _check(name: str, check: Callable[[], Any]) -> str:
    try:
        check()
    except (DatabaseError, redis.RedisError, OSError) as error:
        logger.warning("%s does not answer: %s", name, error)
        return "does not answer"
    return "ok"


def _check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _check_broker() -> None:
    with redis.Redis.from_url(
        settings.SLIPWAY_REDIS_URL, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
    ) as client:
        client.ping()


_NEEDED: Mapping[str, Callable[[], None]] = {"database": _check_database}
_REPORTED: Mapping[str, Callable[[], None]] = {"broker": _check_broker}


def _plain(results: Mapping[str, str], status: HTTPStatus) -> HttpResponse:
    text = "".join(f"{name}: {result}\n" for name, result in results.items())
    return HttpResponse(
        text, status=status, content_type="text/plain", headers={"Cache-Control": "no-store"}
    )
