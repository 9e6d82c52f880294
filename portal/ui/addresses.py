"""URLs of filtered, sorted and paged lists."""

from __future__ import annotations

from django.http import HttpRequest


def with_query(request: HttpRequest, **changed: object) -> str:
    """Return the current URL with changed query parameters. None or an empty text removes one."""
    query = request.GET.copy()
    for name, value in changed.items():
        if value is None or value == "":
            query.pop(name, None)
        else:
            query[name] = str(value)
    text = query.urlencode()
    return f"{request.path}?{text}" if text else request.path
