"""Every page's address and method, as the URL resolver and the views themselves have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal.dashboard import old_addresses

_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
_EXAMPLES = {"int": "1", "slug": "x", "str": "x"}


def patterns() -> Iterator[str]:
    """ "<slug:team>/deployments/<slug:name>" and so on; the API's are in its document."""
    yield from _walk(get_resolver(), "")


def _walk(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLPattern):
            # SCIM has tokens and tests of its own (tests/portal/accounts/scim).
            if not route.startswith(("api/v1/", "scim/v2/")):
                yield route
        elif pattern.urlconf_name is not old_addresses:
            # Those only redirect: tests/portal/ui/test_frame.py.
            yield from _walk(pattern, route)


_methods: dict[str, set[str]] = {}


def methods_of(client: Client, route: str) -> set[str]:
    """What the view itself says it takes, whoever asks; HEAD and OPTIONS left out."""
    if route not in _methods:
        _methods[route] = _read_methods(client, route)
    return _methods[route]


def _read_methods(client: Client, route: str) -> set[str]:
    example = _PARAMETER.sub(lambda pattern: _EXAMPLES[pattern[1] or "str"], route)
    allowed = client.options(f"/{example}").get("Allow", "every method: restrict the view")
    return {name.strip() for name in allowed.split(",")} - {"HEAD", "OPTIONS"}


def path_of(route: str, names: Mapping[str, Any]) -> str:
    """The page of what exists. Pipelines have names of their own."""
    if route.startswith("<slug:team>/pipelines/"):
        names = {**names, "name": names["pipeline"]}
    return "/" + _PARAMETER.sub(lambda pattern: str(names[pattern[2]]), route)
