"""Every operation refuses what the OpenAPI document does not name, and an operation without a body any field."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from tests.portal import api_document
from tests.portal.api.every_operation import operations, rows, send, signed_in
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db


def list_bodyless() -> list[str]:
    return [
        operation
        for operation in operations()
        if not operation.startswith("get ")
        and "requestBody" not in api_document.operation(operation)
    ]


def refusals_of(answers: dict[str, Any], name: str = "zzunknown") -> dict[str, Any]:
    return {
        one: [
            error["detail"] for error in answer.json().get("errors", []) if error["field"] == name
        ]
        if answer.status_code == 422
        else (answer.status_code, answer.content)
        for one, answer in answers.items()
    }


def test_an_unknown_field_is_refused_by_name_and_changes_nothing(full_world: FullWorld) -> None:
    client, before = signed_in(full_world.world.admin), rows()
    calls = list(full_world.world.cluster.calls)
    changes = [operation for operation in operations() if not operation.startswith("get ")]

    answers = {one: send(client, one, full_world.names, zzunknown=1) for one in changes}

    assert len(changes) > 100
    message = 'There is no field "zzunknown". Remove it.'
    assert {one: said for one, said in refusals_of(answers).items() if said != [message]} == {}
    assert rows() == before
    assert full_world.world.cluster.calls == calls


@pytest.mark.parametrize("name", ["zzunknown", "format", "limit", "cursor"])
def test_a_query_parameter_that_an_operation_does_not_have_is_refused_and_changes_nothing(
    full_world: FullWorld, name: str
) -> None:
    client, before = signed_in(full_world.world.admin), rows()
    calls = list(full_world.world.cluster.calls)
    without = [one for one in operations() if name not in api_document.query_names(one)]

    answers = {one: send(client, one, full_world.names, query=f"?{name}=1") for one in without}

    assert len(without) > 150
    said = f'There is no field "{name}".'
    assert {
        one: refusals
        for one, refusals in refusals_of(answers, name).items()
        if len(refusals) != 1 or not str(refusals[0]).startswith(said)
    } == {}
    assert rows() == before
    assert full_world.world.cluster.calls == calls


@pytest.mark.parametrize("name", ["limit", "cursor"])
def test_lists_with_pages_have_the_parameters_of_pages(full_world: FullWorld, name: str) -> None:
    client = signed_in(full_world.world.admin)
    paged = [one for one in operations() if {"limit", "cursor"} <= api_document.query_names(one)]

    answers = {one: send(client, one, full_world.names, query=f"?{name}=1") for one in paged}

    assert len(paged) > 20
    refused = refusals_of(answers, name)
    message = f'There is no field "{name}"'
    assert [one for one, said in refused.items() if message in str(said)] == []


def test_the_document_itself_has_no_format_in_its_query(full_world: FullWorld) -> None:
    client = signed_in(full_world.world.member)

    answer = client.get("/api/v1/schema?format=json")

    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert [error["detail"] for error in answer.json()["errors"]] == [
        'There is no field "format". Remove it.'
    ]


@pytest.mark.parametrize(
    ("operation", "query", "message"),
    [
        ("get advice", "temm=vision", 'There is no field "temm". Did you mean "team"?'),
        (
            "get versions/{version_id}/parts",
            "paht=m",
            'There is no field "paht". Did you mean "path"?',
        ),
        ("get models", "limti=1", 'There is no field "limti". Did you mean "limit"?'),
    ],
)
def test_a_misspelt_parameter_is_named_with_the_nearest(
    full_world: FullWorld, operation: str, query: str, message: str
) -> None:
    client = signed_in(full_world.world.member)

    answer = send(client, operation, full_world.names, query=f"?{query}")

    assert answer.status_code == 422
    assert [error["detail"] for error in answer.json()["errors"]] == [message]


@pytest.mark.parametrize("content", ["", "{}"])
def test_operations_without_a_body_run_without_one_and_with_an_empty_one(
    full_world: FullWorld, content: str
) -> None:
    """Some conflict with the state of their object, which the body has no part in. The preset is not the platform's."""
    client, statuses = signed_in(full_world.world.admin), {}
    for operation in list_bodyless():
        method, path = operation.upper().split()[0], operation.split()[1]
        address = f"/api/v1/{path.format(**full_world.names)}"
        with transaction.atomic():
            answer = client.generic(method, address, content, content_type="application/json")
            transaction.set_rollback(True)
        statuses[operation] = answer.status_code

    assert len(statuses) > 30
    assert statuses.pop("delete deployment-presets/{preset_id}") == 404
    assert {one: at for one, at in statuses.items() if at not in {200, 201, 204, 409}} == {}


def test_an_unknown_field_of_a_tensor_saves_no_golden_request(full_world: FullWorld) -> None:
    client, before = signed_in(full_world.world.member), rows()
    tensor = {"datatype": "FP32", "shape": [1], "data": [1]}
    address = "post models/{team}/{name}/golden-requests"

    sent = send(
        client,
        address,
        full_world.names,
        request={"inputs": [{**tensor, "name": "x", "zzunknown": 1}]},
    )
    answered = send(
        client, address, full_world.names, expected=[{**tensor, "name": "y", "zzunknown": 1}]
    )

    assert (sent.status_code, answered.status_code) == (422, 422)
    message = 'There is no field "zzunknown". Remove it.'
    assert [sent.json()["errors"], answered.json()["errors"]] == [
        [{"field": "request.inputs[0].zzunknown", "detail": message}],
        [{"field": "expected[0].zzunknown", "detail": message}],
    ]
    assert rows() == before
