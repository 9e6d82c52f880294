"""Keep the input of a form that was posted after the session ended, and show it again after sign-in.

Nothing is submitted automatically: the view runs as if the form had been posted, and `ServiceForm.run`
refuses, so the page shows the input with an explanation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.core import signing
from django.http import HttpRequest, QueryDict

from portal.ui import htmx

_SESSION_KEY = "kept_input"
_SALT = "slipway.kept-input"
# Larger input is not kept.
MAX_LENGTH = 64_000
_LIVES_SECONDS = 3600
SIGNED_OUT = (
    "You were signed out before this was sent, so nothing was changed. "
    "Check what you typed and send it again."
)
_why_shown_again: ContextVar[str] = ContextVar("why_shown_again", default="")


def sign_form(request: HttpRequest, *, why: str = SIGNED_OUT) -> str:
    """Return the signed form data, carried by the sign-in page. Empty if it is too large. `why` explains why the
    form is shown again.
    """
    posted = request.POST.copy()
    posted.pop("csrfmiddlewaretoken", None)
    text = posted.urlencode()
    if not text or len(text) > MAX_LENGTH or request.FILES:
        return ""
    return signing.dumps({"path": request.get_full_path(), "data": text, "why": why}, salt=_SALT)


def read_signed_form(text: str) -> dict[str, str] | None:
    """Return the form data. None if it has expired or the signature is invalid."""
    try:
        kept: dict[str, str] = signing.loads(text, salt=_SALT, max_age=_LIVES_SECONDS)
    except signing.BadSignature:
        return None
    return kept


def store(request: HttpRequest, kept: dict[str, str]) -> None:
    """Keep the form data in the session until the next request, which opens the form."""
    request.session[_SESSION_KEY] = kept


def take(request: HttpRequest) -> dict[str, str] | None:
    """Take the form data once, only for the form's own address; any other page discards it."""
    if request.method != "GET" or htmx.is_htmx_request(request):
        return None
    kept: dict[str, str] | None = request.session.pop(_SESSION_KEY, None)
    if kept is None or kept["path"] != request.get_full_path():
        return None
    return kept


@contextmanager
def showing_again(request: HttpRequest, kept: dict[str, str]) -> Iterator[None]:
    """Make the request look like the lost POST; forms refuse to submit inside."""
    # Now, because the first read of the files replaces the data.
    request.FILES.clear()
    request.method = "POST"
    request.POST = QueryDict(kept["data"])
    token = _why_shown_again.set(kept.get("why") or SIGNED_OUT)
    try:
        yield
    finally:
        _why_shown_again.reset(token)


def why_shown_again() -> str:
    """Return why the form is shown again. Empty for a form that was posted."""
    return _why_shown_again.get()
