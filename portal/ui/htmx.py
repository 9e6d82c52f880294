"""Distinguish fragment requests from page requests.

A polled fragment carries `hx-get`, `hx-trigger="every 3s"` and `hx-swap="outerHTML"`; the status
`STOP_POLLING` ends the polling when the state is final.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

STOP_POLLING = 286
# What several people poll may be of so many seconds ago. Less than the 15 s between two polls of a page: nobody is
# sent what is older than what they see.
SHARED_SECONDS = 10


class HtmxHttpRequest(HttpRequest):
    htmx: HtmxDetails


def is_htmx_request(request: HttpRequest) -> bool:
    """Whether htmx sent the request, for a fragment or to restore a page of the history."""
    return request.headers.get("HX-Request") == "true"


def is_partial(request: HttpRequest) -> bool:
    """Whether htmx requests a fragment; restoring the history requests the whole page."""
    htmx = cast("HtmxHttpRequest", request).htmx if hasattr(request, "htmx") else None
    if htmx is None or not htmx:
        return False
    return not (htmx.history_restore_request or htmx.boosted)


def template_for(request: HttpRequest, *, page: str, fragment: str) -> str:
    return fragment if is_partial(request) else page


def redirect(request: HttpRequest, url: str) -> HttpResponse:
    """Redirect after a POST: 303 for a form, HX-Redirect for htmx."""
    response = HttpResponse(status=204 if is_partial(request) else 303)
    response["HX-Redirect" if is_partial(request) else "Location"] = url
    return response


def target_of(request: HttpRequest) -> str:
    """Return the id of the element that htmx will swap. Empty for a whole page."""
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
    """Render the page, or the part that htmx will swap; `parts` maps an element's id to its template."""
    target = target_of(request)
    if parts and target in parts:
        return respond_with_part(request, parts[target], context, is_final=is_final, status=status)
    return render(request, page, dict(context), status=status)


def respond_with_part(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    is_final: bool = False,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """Render the part that htmx will swap; a polled one that is final is not requested again."""
    done = STOP_POLLING if is_final and request.method == "GET" else status
    return render(request, template, dict(context), status=done)
