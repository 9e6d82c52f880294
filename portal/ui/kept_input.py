"""What was typed into a form whose session had ended: kept over the sign-in, shown in the form again.

Nothing is sent by itself. The view runs once more as if the form had been posted, and
`ServiceForm.run` refuses, so the page comes back with the input and a word why.
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
# Longer than any form of text; what is larger is not kept.
LONGEST = 64_000
_LIVES_SECONDS = 3600
_is_shown_again: ContextVar[bool] = ContextVar("is_shown_again", default=False)


def sealed(request: HttpRequest) -> str:
    """What was posted, for the sign-in page to carry; empty when there is too much of it."""
    posted = request.POST.copy()
    posted.pop("csrfmiddlewaretoken", None)
    text = posted.urlencode()
    if not text or len(text) > LONGEST or request.FILES:
        return ""
    return signing.dumps({"path": request.get_full_path(), "data": text}, salt=_SALT)


def opened(text: str) -> dict[str, str] | None:
    """None for what is too old, or was not sealed here."""
    try:
        kept: dict[str, str] = signing.loads(text, salt=_SALT, max_age=_LIVES_SECONDS)
    except signing.BadSignature:
        return None
    return kept


def store(request: HttpRequest, kept: dict[str, str]) -> None:
    """Until the form is asked for: the next thing that the browser does."""
    request.session[_SESSION_KEY] = kept


def take(request: HttpRequest) -> QueryDict | None:
    """Once, and only for the address that the form posts to; any other page forgets it."""
    if request.method != "GET" or htmx.is_htmx_request(request):
        return None
    kept: dict[str, str] | None = request.session.pop(_SESSION_KEY, None)
    if kept is None or kept["path"] != request.get_full_path():
        return None
    return QueryDict(kept["data"])


@contextmanager
def showing_again(request: HttpRequest, posted: QueryDict) -> Iterator[None]:
    """Inside, the request looks like the post that was lost, and no form does anything."""
    request.method = "POST"
    request.POST = posted  # type: ignore[assignment]  # immutable, as a real one
    # Else reading the files would read the body, and forget what was posted.
    request._files = MultiValueDict()  # type: ignore[attr-defined]  # Django's own
    token = _is_shown_again.set(True)
    try:
        yield
    finally:
        _is_shown_again.reset(token)


def is_shown_again() -> bool:
    return _is_shown_again.get()
