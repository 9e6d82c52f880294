"""For probes of the web process: whether it runs, and whether what every request needs answers."""

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
    """503 and which part does not answer, without why: anyone may ask this."""
    found = {name: _ask(name, ask) for name, ask in _PARTS.items()}
    is_fine = all(words == "ok" for words in found.values())
    return _plain(found, HTTPStatus.OK if is_fine else HTTPStatus.SERVICE_UNAVAILABLE)


def _ask(name: str, ask: Callable[[], Any]) -> str:
    try:
        ask()
    except (DatabaseError, redis.RedisError, OSError) as error:
        logger.warning("not ready: %s: %s", name, error)
        return "does not answer"
    return "ok"


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_broker() -> None:
    with redis.Redis.from_url(
        settings.SLIPWAY_REDIS_URL, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
    ) as client:
        client.ping()


_PARTS: Mapping[str, Callable[[], None]] = {"database": _ask_database, "broker": _ask_broker}


def _plain(found: Mapping[str, str], status: HTTPStatus) -> HttpResponse:
    text = "".join(f"{name}: {words}\n" for name, words in found.items())
    return HttpResponse(
        text, status=status, content_type="text/plain", headers={"Cache-Control": "no-store"}
    )
