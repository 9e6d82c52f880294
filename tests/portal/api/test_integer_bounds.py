"""Integers that no column can hold, wherever a request names one: in the address, its query and its body."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from tests.portal import addresses, api_document
from tests.portal.api import every_operation
from tests.portal.api.full_world import FullWorld
from tests.portal.permissions import matrix
from tests.portal.permissions.test_matrix import ROWS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("frame_once")]
VALUES: Final = (
    "99999999999999999999",
    "9223372036854775808",
    "9223372036854775807",
    "2147483648",
    "-1",
    "-99999999999999999999",
)
# What pages read from their query, by `request.GET` and in forms of filters.
QUERY_NAMES: Final = (
    *("page", "tensors", "tensors_page", "sessions", "events", "part", "invitations", "from", "to"),
    *("version", "revision", "template", "days", "older_than", "lines", "cluster", "pool"),
    *("team", "metric", "of", "show", "case", "deployment", "file", "model", "q", "kind"),
    *("limit", "cursor", "after", "node", "hours", "number", "id", "access", "where", "pod"),
)


def integer_parameters(place: str) -> Iterator[tuple[str, str]]:
    """Operation and name of each parameter that the document says is an integer."""
    for operation in every_operation.operations():
        for parameter in api_document.operation(operation).get("parameters", []):
            if parameter["in"] == place and parameter["schema"].get("type") == "integer":
                yield operation, parameter["name"]


def integer_fields() -> Iterator[tuple[str, str]]:
    """Operation and name of each field of a body that is an integer."""
    schemas = api_document.read()["components"]["schemas"]
    for operation in every_operation.operations():
        content = api_document.operation(operation).get("requestBody", {}).get("content", {})
        reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        properties = schemas.get(reference.rpartition("/")[2], {}).get("properties", {})
        for name, schema in properties.items():
            if schema.get("type") == "integer":
                yield operation, name


def client_of(full: FullWorld) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(full.world.admin)
    return client


def status_of(client: APIClient, operation: str, names: dict[str, Any], **more: Any) -> int:
    with transaction.atomic():
        answer = every_operation.send(client, operation, names, **more)
        transaction.set_rollback(True)
    return int(answer.status_code)


def test_every_integer_of_a_query_has_bounds() -> None:
    unbounded = []
    for operation, name in integer_parameters("query"):
        parameters = api_document.operation(operation)["parameters"]
        schema = next(one["schema"] for one in parameters if one["name"] == name)
        if not {"minimum", "maximum"} <= schema.keys():
            unbounded.append((operation, name))

    assert unbounded == []


def test_integers_of_queries_are_answered(full_world: FullWorld) -> None:
    client = client_of(full_world)

    statuses = {
        (operation, name, value): status_of(
            client, operation, full_world.names, query=f"?{name}={value}"
        )
        for operation, name in integer_parameters("query")
        for value in VALUES
    }

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}
    # A page has at most so many rows as it has, whatever the limit is.
    too_large = {
        sent: status
        for sent, status in statuses.items()
        if sent[1] != "limit" and sent[2] in VALUES[:2]
    }
    assert {sent: status for sent, status in too_large.items() if status != 422} == {}


def test_integers_of_addresses_are_answered(full_world: FullWorld) -> None:
    client = client_of(full_world)

    statuses = {
        (operation, name, value): status_of(client, operation, {**full_world.names, name: value})
        for operation, name in integer_parameters("path")
        for value in VALUES
    }

    # Some addresses take any text there, and what is in the way is told first.
    refusals = {400, 404, 405, 409, 422}
    assert {sent: status for sent, status in statuses.items() if status not in refusals} == {}


def test_integers_of_bodies_are_answered(full_world: FullWorld) -> None:
    client = client_of(full_world)

    statuses = {
        (operation, name, value): status_of(
            client, operation, full_world.names, **{name: int(value)}
        )
        for operation, name in integer_fields()
        for value in VALUES
    }

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}


def test_integers_of_pages_are_answered(full_world: FullWorld) -> None:
    """The first value is in forms: for a page it is the second one again, larger than any column."""
    client = Client(raise_request_exception=False)
    client.force_login(full_world.world.admin)
    statuses = {}
    for row in ROWS:
        method, _, route = row.key.partition(" ")
        if method != "GET" or row.is_api:
            continue
        names = {**full_world.names, **row.named}
        for value in VALUES[1:3]:
            query = "&".join(f"{name}={value}" for name in QUERY_NAMES)
            path = f"{addresses.path_of(route, names)}?{query}"
            statuses[route, "?", value] = client.get(path).status_code
        for name in re.findall(r"<int:(\w+)>", route):
            for value in VALUES[1:4]:
                path = addresses.path_of(route, {**names, name: value})
                statuses[route, name, value] = client.get(path).status_code

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}


def test_integers_of_forms_are_answered(full_world: FullWorld) -> None:
    """Every field that a form of the matrix sends, as a number that is too large."""
    statuses = {}
    cookies = matrix.sign_in(full_world.world.admin)
    for row in ROWS:
        method, _, route = row.key.partition(" ")
        if method != "POST" or row.is_api or "admin" not in row.allowed.split():
            continue
        for name in re.findall(r"<int:(\w+)>", route):
            client = Client(raise_request_exception=False)
            client.cookies = cookies
            path = addresses.path_of(route, {**full_world.names, **row.named, name: VALUES[0]})
            with transaction.atomic():
                statuses[row.key, name] = client.post(path, row.body).status_code
                transaction.set_rollback(True)

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}
