"""The OpenAPI document, generated once in a process: it takes seconds."""

from __future__ import annotations

import copy
import functools
from typing import Any

from drf_spectacular.generators import SchemaGenerator


def read() -> dict[str, Any]:
    """A copy, which the reader may change."""
    return copy.deepcopy(_generated())


def operation(name: str) -> dict[str, Any]:
    """Of "get teams/{slug}" and so on."""
    method, path = name.split()
    documented: dict[str, Any] = _generated()["paths"][f"/api/v1/{path}"][method]
    return documented


def query_names(name: str) -> set[str]:
    """The query parameters of "get teams/{slug}" and so on."""
    parameters = operation(name).get("parameters", [])
    return {parameter["name"] for parameter in parameters if parameter["in"] == "query"}


@functools.cache
def _generated() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator(api_version="v1").get_schema(
        request=None, public=True
    )
    return document
