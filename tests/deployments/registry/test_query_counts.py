"""Lists need as many queries for ten rows as for two."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.models import Alias, Model, ModelVersion
from deployments.states import VersionState
from portal.core import clock
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db


def add_models(people: People, names: list[str], *, versions: int) -> None:
    at = clock.now()
    for name in names:
        model = Model.objects.create(
            team=people.team, name=name, created_by=people.member, created_at=at, changed_at=at
        )
        for number in range(1, versions + 1):
            version = ModelVersion.objects.create(
                model=model,
                number=number,
                state=VersionState.READY,
                filename="m.onnx",
                declared_size_bytes=1,
                bucket="b",
                upload_prefix=f"{name}{number}/",
                metadata={"accuracy": 0.9},
                created_by=people.member,
                created_at=at,
            )
            Alias.objects.create(model=model, name=f"a{number}", version=version, moved_at=at)


def queries(client: Client, address: str) -> int:
    """Without the counts that are kept for half a minute."""
    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize(
    "address",
    [
        "/vision/models",
        "/vision/models/m0",
        "/api/v1/models",
        "/api/v1/versions",
        "/api/v1/models/vision/m0/versions",
    ],
)
def test_more_rows_need_no_more_queries(people: People, client: Client, address: str) -> None:
    client.force_login(people.member)
    add_models(people, ["m0", "m1"], versions=2)
    client.get(address)
    few = queries(client, address)

    add_models(people, [f"n{i}" for i in range(8)], versions=3)
    m0 = Model.objects.get(name="m0")
    for number in range(3, 8):
        first = ModelVersion.objects.get(model=m0, number=1)
        first.pk, first.number, first.upload_prefix = None, number, f"copy{number}/"
        first.save(force_insert=True)

    assert queries(client, address) == few
