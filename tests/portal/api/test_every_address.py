"""Every operation that the OpenAPI document names, signed out and as an outsider.

An address that is new is walked too: what every_operation does not list as shared has to be hidden.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.api.problems import CONTENT_TYPE
from tests.portal.api.every_operation import (
    ADMINS,
    ANONYMOUS,
    BODIES,
    FLEET,
    MANAGERS,
    OWN,
    SHARED,
    UPLOADERS,
    operations,
    rows,
    send,
    signed_in,
)
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db
# Whoever sees a request may say something about it: tests/deployments/changes/test_comments.py.
COMMENTS = {
    "post changes/{change_id}/comments",
    "post pipeline-changes/{pipeline_change_id}/comments",
}


def mentions(content: bytes) -> list[str]:
    names = ("vision", "detector", "member", "champion", "lead2")
    return [word for word in names if re.search(rf"\b{word}\b".encode(), content)]


def content_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_nobody_gets_anything_anywhere(full_world: FullWorld) -> None:
    before = rows()

    answers = {
        operation: send(APIClient(), operation, full_world.names) for operation in operations()
    }

    assert len(answers) > 50
    assert {one: a.status_code for one, a in answers.items() if a.status_code != 401} == {}
    assert {one for one, a in answers.items() if a["Content-Type"] != CONTENT_TYPE} == set()
    assert rows() == before


def test_a_stranger_meets_nothing_of_another_team(full_world: FullWorld) -> None:
    client, before = signed_in(full_world.world.stranger), rows()
    calls = list(full_world.world.cluster.calls)
    hidden = [
        operation
        for operation in operations()
        if operation not in SHARED | OWN | ANONYMOUS | ADMINS | FLEET
    ]

    answers = {item: send(client, item, full_world.names) for item in hidden}

    assert {o: a.status_code for o, a in answers.items() if a.status_code not in {200, 404}} == {}
    assert {o for o, a in answers.items() if a.status_code == 200 and "{" in o} == set()
    mentioned = {one: mentions(content_of(a)) for one, a in answers.items() if a.status_code == 200}
    assert {address: names for address, names in mentioned.items() if names} == {}
    assert rows() == before
    assert full_world.world.cluster.calls == calls


def test_what_is_shared_names_no_other_team(full_world: FullWorld) -> None:
    client = signed_in(full_world.world.stranger)
    answers = {}
    for operation in sorted(SHARED | OWN | ANONYMOUS):
        method, path = operation.split()
        body = {"name": "notebook"} if operation == "post me/tokens" else None
        address = f"/api/v1/{path.format(**full_world.names)}"
        answers[operation] = getattr(client, method)(address, body, format="json")

    assert {o: a.status_code for o, a in answers.items() if a.status_code not in {200, 201}} == {}
    mentioned = {one: mentions(answer.content) for one, answer in answers.items()}
    assert {address: names for address, names in mentioned.items() if names} == {}


@pytest.mark.parametrize("who", ["stranger", "viewer", "member", "lead"])
def test_what_only_admins_may_is_refused_by_name(full_world: FullWorld, who: str) -> None:
    client, before = signed_in(getattr(full_world.world, who)), rows()

    answers = {admin: send(client, admin, full_world.names) for admin in sorted(ADMINS)}

    refusals = {one: (answer.status_code, answer.json()["code"]) for one, answer in answers.items()}
    assert refusals == dict.fromkeys(sorted(ADMINS), (403, "role_required"))
    assert rows() == before


def test_the_preview_of_a_drain_names_no_other_team(full_world: FullWorld) -> None:
    client = signed_in(full_world.world.stranger)

    answer = send(client, "get nodes/{node_id}/drain-preview", full_world.names)

    assert (answer.status_code, mentions(answer.content)) == (200, [])


def test_a_viewer_reads_all_and_changes_nothing(full_world: FullWorld) -> None:
    client, before = signed_in(full_world.world.viewer), rows()
    left_out = OWN | ADMINS | COMMENTS | {"delete me/tokens/{token_id}"}
    mine = [o for o in operations() if o not in left_out]

    answers = {item: send(client, item, full_world.names) for item in mine}

    statuses = {one: answer.status_code for one, answer in answers.items()}
    reads = (
        {status for status in statuses if status.startswith("get ")} - UPLOADERS - MANAGERS - FLEET
    )
    writes = {one: status for one, status in statuses.items() if one not in reads}
    # It serves in production, the last environment.
    assert statuses.pop("get deployments/{deployment_id}/promotion") == 409
    reads.discard("get deployments/{deployment_id}/promotion")
    assert {read: statuses[read] for read in reads if statuses[read] != 200} == {}
    # A preflight writes nothing; the missing permission is one of its checks.
    assert writes.pop("post deployments/preflight") in {200, 403}
    # A conversion writes nothing either; the version has no signature here.
    assert writes.pop("post versions/{version_id}/triton-config") == 422
    assert {one: status for one, status in writes.items() if status != 403} == {}
    assert rows() == before


def test_the_lists_of_exceptions_name_what_there_is() -> None:
    assert SHARED | OWN | ANONYMOUS | ADMINS | FLEET | BODIES.keys() <= set(operations())
