"""Two people who edit the same thing: the second is refused, and the first's edit stays."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.models import Alias, Model, ModelVersion
from portal.accounts.models import Team
from portal.audit.models import AuditEvent
from tests.portal.api.full_world import FullWorld

EDITS = [
    ("patch", "teams/vision", {"quota_gpus": 3, "monthly_budget_amount": "7.00"}),
    ("patch", "models/vision/detector", {"description": "finds things"}),
    ("patch", "versions/{version_id}", {"metadata": {"accuracy": 0.5}}),
    ("put", "models/vision/detector/aliases/champion", {"version": 2}),
]


@pytest.fixture
def admin(full_world: FullWorld) -> APIClient:
    client = APIClient()
    client.force_authenticate(full_world.world.admin)
    return client


def edit(client: APIClient, method: str, address: str, body: Any, etag: str = "") -> Any:
    headers = {"If-Match": etag} if etag else {}
    return getattr(client, method)(address, body, format="json", headers=headers)


def state() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values())
        for model in (Team, Model, ModelVersion, Alias, AuditEvent)
    ]


@pytest.mark.parametrize(("method", "path", "body"), EDITS, ids=[path for _, path, _ in EDITS])
def test_an_edit_of_what_was_read_succeeds_once(
    full_world: FullWorld, admin: APIClient, method: str, path: str, body: Any
) -> None:
    address = f"/api/v1/{path.format(**full_world.names)}"
    read = admin.get(address)["ETag"]

    first = edit(admin, method, address, body, read)
    after_first = state()
    second = edit(admin, method, address, body, read)

    assert first.status_code == 200, first.content
    assert first["ETag"] == admin.get(address)["ETag"] != read
    assert (second.status_code, second.json()["code"]) == (412, "stale")
    assert second["Content-Type"] == "application/problem+json"
    assert state() == after_first


@pytest.mark.parametrize("etag", ["", "*", '"other", {read}'])
def test_without_a_state_to_keep_to_the_edit_just_happens(
    full_world: FullWorld, admin: APIClient, etag: str
) -> None:
    method, path, body = EDITS[0]
    read = admin.get(f"/api/v1/{path}")["ETag"]

    answer = edit(admin, method, f"/api/v1/{path}", body, etag.format(read=read))

    assert answer.status_code == 200
    assert Team.objects.get(slug="vision").quota_gpus == 3


def test_a_condition_on_what_is_not_there_makes_nothing(
    full_world: FullWorld, admin: APIClient
) -> None:
    address = "/api/v1/models/vision/detector/aliases/new"

    assert edit(admin, "put", address, {"version": 1}, '"x"').status_code == 404
    assert not Alias.objects.filter(name="new").exists()


def test_a_stranger_learns_nothing_from_a_condition(full_world: FullWorld) -> None:
    client = APIClient()
    client.force_authenticate(full_world.world.stranger)

    answer = edit(client, "patch", "/api/v1/teams/vision", EDITS[0][2], '"x"')

    assert answer.status_code == 404
