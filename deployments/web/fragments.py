"""One view, several answers: the whole page, or the polled part of it that htmx asked for."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.ui.htmx import STOP_POLLING, is_partial

__all__ = ["STOP_POLLING", "respond", "target_of"]


def target_of(request: HttpRequest) -> str:
    """The id of the element that htmx will swap; empty when a whole page is asked for."""
    target = getattr(getattr(request, "htmx", None), "target", None) or ""
    return target if is_partial(request) else ""


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
    target = target_of(request)
    if parts and target in parts:
        done = STOP_POLLING if is_final and request.method == "GET" else status
        return render(request, parts[target], dict(context), status=done)
    return render(request, page, dict(context), status=status)
