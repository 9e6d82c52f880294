"""Liveness and readiness probes of the web process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

logger = logging.getLogger(__name__)

_SECONDS = 2.0


@require_safe
def is_running(request: HttpRequest) -> HttpResponse:
    return _plain({"process": "ok"}, HTTPStatus.OK)


@require_safe
def is_ready(request: HttpRequest) -> HttpResponse:
    """503 naming the part that does not respond, without details, because the endpoint is public."""
    results = {name: _check(name, check) for name, check in _PARTS.items()}
    is_fine = all(result == "ok" for result in results.values())
    return _plain(results, HTTPStatus.OK if is_fine else HTTPStatus.SERVICE_UNAVAILABLE)


def _check(name: str, check: Callable[[], Any]) -> str:
    try:
        check()
    except (DatabaseError, redis.RedisError, OSError) as error:
        logger.warning("not ready: %s: %s", name, error)
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


_PARTS: Mapping[str, Callable[[], None]] = {"database": _check_database, "broker": _check_broker}


def _plain(results: Mapping[str, str], status: HTTPStatus) -> HttpResponse:
    text = "".join(f"{name}: {result}\n" for name, result in results.items())
    return HttpResponse(
        text, status=status, content_type="text/plain", headers={"Cache-Control": "no-store"}
    )
