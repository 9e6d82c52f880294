"""One view, several answers: the whole page, or the polled part of it that htmx asked for."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.models import User
from portal.ui.htmx import is_partial

# htmx stops polling when it gets this.
STOP_POLLING = 286


def actor_of(request: HttpRequest) -> User:
    """The signed-in person; views that call this are behind login_required."""
    return cast("User", request.user)


def respond(
    request: HttpRequest,
    page: str,
    context: Mapping[str, Any],
    *,
    parts: Mapping[str, str] | None = None,
    is_final: bool = False,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """`parts` maps the id of an element to the template of it; htmx names the id it will swap."""
    target = getattr(getattr(request, "htmx", None), "target", None) or ""
    if is_partial(request) and parts and target in parts:
        done = STOP_POLLING if is_final and request.method == "GET" else status
        return render(request, parts[target], dict(context), status=done)
    return render(request, page, dict(context), status=status)
