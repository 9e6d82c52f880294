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
from django.utils.datastructures import MultiValueDict

from portal.ui import htmx

_SESSION_KEY = "kept_input"
_SALT = "slipway.kept-input"
# Larger input is not kept.
MAX_LENGTH = 64_000
_LIVES_SECONDS = 3600
_is_shown_again: ContextVar[bool] = ContextVar("is_shown_again", default=False)


def sealed(request: HttpRequest) -> str:
    """The signed form data, carried by the sign-in page; empty when it is too large."""
    posted = request.POST.copy()
    posted.pop("csrfmiddlewaretoken", None)
    text = posted.urlencode()
    if not text or len(text) > MAX_LENGTH or request.FILES:
        return ""
    return signing.dumps({"path": request.get_full_path(), "data": text}, salt=_SALT)


def opened(text: str) -> dict[str, str] | None:
    """The form data; None when it has expired or the signature is invalid."""
    try:
        kept: dict[str, str] = signing.loads(text, salt=_SALT, max_age=_LIVES_SECONDS)
    except signing.BadSignature:
        return None
    return kept


def store(request: HttpRequest, kept: dict[str, str]) -> None:
    """Keep the form data in the session until the next request, which opens the form."""
    request.session[_SESSION_KEY] = kept


def take(request: HttpRequest) -> QueryDict | None:
    """Take the form data once, only for the form's own address; any other page discards it."""
    if request.method != "GET" or htmx.is_htmx_request(request):
        return None
    kept: dict[str, str] | None = request.session.pop(_SESSION_KEY, None)
    if kept is None or kept["path"] != request.get_full_path():
        return None
    return QueryDict(kept["data"])


@contextmanager
def showing_again(request: HttpRequest, posted: QueryDict) -> Iterator[None]:
    """Make the request look like the lost POST; forms refuse to submit inside."""
    request.method = "POST"
    request.POST = posted  # type: ignore[assignment]  # immutable, as a real one
    # Otherwise reading the files would read the body and discard the data.
    request._files = MultiValueDict()  # type: ignore[attr-defined]  # Django's own
    token = _is_shown_again.set(True)
    try:
        yield
    finally:
        _is_shown_again.reset(token)


def is_shown_again() -> bool:
    return _is_shown_again.get()
