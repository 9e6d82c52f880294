"""Addresses in groups are the same addresses, with the same routes and names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, URLPattern, URLResolver, path
from django.urls.resolvers import RegexPattern

from portal.core.url_groups import by_first_segment


def _view(request: HttpRequest, **values: object) -> HttpResponse:
    return HttpResponse()


PATTERNS = [
    path("models", _view, name="models"),
    path("costs.csv", _view, name="csv"),
    path("models/<slug:team>/<str:name>", _view, name="model"),
    path("versions/facets", _view, name="facets"),
    path("versions/<int:number>", _view, {"kind": "one"}, name="version"),
    path("<slug:first>/last", _view, name="open"),
]


def _resolver(patterns: Sequence[URLPattern | URLResolver]) -> URLResolver:
    return URLResolver(RegexPattern(r"^/"), patterns)


@pytest.mark.parametrize(
    "address",
    [
        *("models", "models/", "models/a", "models/a/b", "models/last", "costs.csv"),
        *("versions/facets", "versions/3", "versions/x", "other/last", "x", ""),
    ],
)
def test_each_address_leads_to_the_same_place(address: str) -> None:
    plain, grouped = _resolver(PATTERNS), _resolver(by_first_segment(PATTERNS))

    try:
        expected = plain.resolve(f"/{address}")
    except Resolver404:
        with pytest.raises(Resolver404):
            grouped.resolve(f"/{address}")
        return
    actual = grouped.resolve(f"/{address}")
    assert (actual.route, actual.url_name, actual.kwargs) == (
        expected.route,
        expected.url_name,
        expected.kwargs,
    )
    captured = {name: value for name, value in actual.kwargs.items() if name != "kind"}
    assert grouped.reverse(str(actual.url_name), **captured) == address
