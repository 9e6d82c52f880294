"""How views tell a fragment request from a page request.

A polled fragment carries `hx-get`, `hx-trigger="every 3s"` and `hx-swap="outerHTML"`; answer
it with the status `STOP_POLLING` when the state is final, and htmx asks no more.
"""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

STOP_POLLING = 286


class HtmxHttpRequest(HttpRequest):
    htmx: HtmxDetails


def is_partial(request: HttpRequest) -> bool:
    """True when htmx wants a fragment; going back in the history wants the whole page."""
    htmx = cast("HtmxHttpRequest", request).htmx if hasattr(request, "htmx") else None
    if htmx is None or not htmx:
        return False
    return not (htmx.history_restore_request or htmx.boosted)


def template_for(request: HttpRequest, *, page: str, fragment: str) -> str:
    return fragment if is_partial(request) else page


def redirect(request: HttpRequest, url: str) -> HttpResponse:
    """After a POST: 303 for a form, HX-Redirect for htmx, so that both end on a fresh page."""
    response = HttpResponse(status=204 if is_partial(request) else 303)
    response["HX-Redirect" if is_partial(request) else "Location"] = url
    return response
