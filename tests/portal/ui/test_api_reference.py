"""The reference of the REST API: every operation of the OpenAPI document, with what it takes and answers."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from django.test import Client

from portal.ui.docs import api_reference
from tests.accounts import make_user
from tests.page import page
from tests.portal import api_document


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(make_user(username="ana"))
    return client


def read_operation(name: str) -> api_reference.Operation:
    return next(
        operation
        for group in api_reference.list_groups()
        for operation in group.operations
        if operation.name == name
    )


@pytest.mark.django_db
def test_the_index_leads_to_every_operation_of_the_document(browser: Client) -> None:
    documented = {
        f"{method.upper()} {path}"
        for path, methods in api_document.read()["paths"].items()
        for method in methods
    }
    index = browser.get("/docs/api").content.decode()
    found = re.findall(r'href="(/docs/api/[a-z-]+)#(\w+)"', index)
    pages = {path: browser.get(path).content.decode() for path in {path for path, _ in found}}

    assert [(path, name) for path, name in found if f'id="{name}"' not in pages[path]] == []
    operations = [each for group in api_reference.list_groups() for each in group.operations]
    assert {f"{each.method} {each.path}" for each in operations} == documented
    assert sorted(name for _, name in found) == sorted(each.name for each in operations)


@pytest.mark.django_db
def test_every_link_of_a_group_has_its_target(browser: Client) -> None:
    missing = {}
    for group in api_reference.list_groups():
        html = browser.get(f"/docs/api/{group.slug}").content.decode()
        targets = set(re.findall(r'href="#([\w-]+)"', html)) - {"rail", "content"}
        ids = re.findall(r'id="([\w-]+)"', html)
        missing[group.slug] = [*(targets - set(ids)), *(one for one in ids if ids.count(one) > 1)]

    assert {slug: names for slug, names in missing.items() if names} == {}


@pytest.mark.django_db
def test_an_operation_shows_what_it_takes(browser: Client) -> None:
    shown = page(browser.get("/docs/api/deployments"))

    assert shown.row("version_id required")["Kind"] == "integer"
    assert "Request a new deployment. The response is the change request" in shown.text
    assert "Token with scope request" in shown.text
    assert browser.get("/docs/api/nothing").status_code == 404


def test_an_operation_says_what_it_answers() -> None:
    operation = read_operation("list_deployments")
    [answer] = operation.answers

    assert (answer.status, answer.kind) == (200, api_reference.FieldKind("page of", "Deployment"))
    assert set(json.loads(answer.example)) == {"next", "previous", "results"}
    assert operation.refusals == [400, 401, 404, 422, 429]
    [state] = [field for field in operation.parameters if field.name == "state"]
    # What drf-spectacular writes into its description is said once.
    assert state.choices == ["pending", "progressing", "ready", "degraded", "stopped", "retired"]
    assert state.description == ""


def test_the_example_of_each_request_can_be_sent() -> None:
    for group in api_reference.list_groups():
        for operation in group.operations:
            words = shlex.split(operation.curl)
            address = re.sub(r"\{(\w+)\}", lambda name: f"${name[1].upper()}", operation.path)
            assert words[-1] == f"$SLIPWAY_URL{address}"
            assert ("-X" in words) == (operation.method != "GET")
            if "-d" in words:
                required = {field.name for field in operation.body if field.is_required}
                body = json.loads(words[words.index("-d") + 1])
                # Fields of fields have dots in their names.
                assert {name for name in required if re.fullmatch(r"\w+", name)} <= set(body)
