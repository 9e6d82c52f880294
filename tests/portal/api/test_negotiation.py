"""Answers are JSON for everyone who accepts it; the shortcut for common headers changes nothing."""

from __future__ import annotations

import pytest
from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from portal.api.responses import Negotiation

HEADERS = [
    None,
    "*/*",
    "application/json",
    "application/*",
    "text/html, application/json;q=0.9, */*;q=0.8",
    "application/json; indent=4",
    "text/html",
    "",
]


def _chosen(negotiation: DefaultContentNegotiation, header: str | None) -> object:
    headers = {} if header is None else {"accept": header}
    request = Request(APIRequestFactory().get("/", headers=headers))
    try:
        _, media_type = negotiation.select_renderer(request, [JSONRenderer()], None)
    except NotAcceptable:
        return None
    return media_type


@pytest.mark.parametrize("header", HEADERS)
def test_it_chooses_what_the_framework_chooses(header: str | None) -> None:
    assert _chosen(Negotiation(), header) == _chosen(DefaultContentNegotiation(), header)


def test_it_refuses_who_takes_no_json() -> None:
    assert _chosen(Negotiation(), "text/html") is None
