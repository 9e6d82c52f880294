"""Every operation refuses what the OpenAPI document does not name, and an operation without a body any field."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from tests.portal import api_document
from tests.portal.api.every_operation import operations, rows, send, signed_in
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db
BODYLESS = [
    operation
    for operation in operations()
    if not operation.startswith("get ") and "requestBody" not in api_document.operation(operation)
]


def refusals_of(answers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [
            error["detail"]
            for error in answer.json().get("errors", [])
            if error["field"] == "zzunknown"
        ]
        if answer.status_code == 422
        else (answer.status_code, answer.content)
        for name, answer in answers.items()
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


def test_an_unknown_query_parameter_lists_nothing(full_world: FullWorld) -> None:
    client = signed_in(full_world.world.admin)
    reads = [operation for operation in operations() if operation.startswith("get ")]
    answers = {}
    for operation in reads:
        path = operation.removeprefix("get ").format(**full_world.names)
        answers[operation] = client.get(f"/api/v1/{path}?zzunknown=1")

    assert len(reads) > 80
    message = 'There is no field "zzunknown". Remove it.'
    assert {one: said for one, said in refusals_of(answers).items() if said != [message]} == {}


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("advice?temm=vision", 'There is no field "temm". Did you mean "team"?'),
        ("versions/{version_id}/parts?paht=m", 'There is no field "paht". Did you mean "path"?'),
    ],
)
def test_a_misspelt_parameter_is_named_with_the_nearest(
    full_world: FullWorld, address: str, message: str
) -> None:
    client = signed_in(full_world.world.member)

    answer = client.get(f"/api/v1/{address.format(**full_world.names)}")

    assert answer.status_code == 422
    assert [error["detail"] for error in answer.json()["errors"]] == [message]


@pytest.mark.parametrize("content", ["", "{}"])
def test_operations_without_a_body_run_without_one_and_with_an_empty_one(
    full_world: FullWorld, content: str
) -> None:
    """Some conflict with the state of their object, which the body has no part in."""
    client, statuses = signed_in(full_world.world.admin), {}
    for operation in BODYLESS:
        method, path = operation.upper().split()[0], operation.split()[1]
        address = f"/api/v1/{path.format(**full_world.names)}"
        with transaction.atomic():
            answer = client.generic(method, address, content, content_type="application/json")
            transaction.set_rollback(True)
        statuses[operation] = answer.status_code

    assert len(BODYLESS) > 30
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
