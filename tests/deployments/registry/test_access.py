"""Every door of the registry, as everyone."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.models import ModelVersion
from portal.audit.models import AuditEvent
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db
M = "/api/v1/models"
V = "/api/v1/versions/{id}"
START = {"filename": "b.onnx", "size_bytes": 9}

# door: method, address, body, then status as anonymous, stranger, viewer, member, lead, admin
DOORS = {
    "list": ("get", M, None, [401, 200, 200, 200, 200, 200]),
    "model": ("get", f"{M}/vision/detector", None, [401, 404, 200, 200, 200, 200]),
    "versions": ("get", f"{M}/vision/detector/versions", None, [401, 404, 200, 200, 200, 200]),
    "numbered": ("get", f"{M}/vision/detector/versions/1", None, [401, 404, 200, 200, 200, 200]),
    "version": ("get", V, None, [401, 404, 200, 200, 200, 200]),
    "aliases": ("get", f"{M}/vision/detector/aliases", None, [401, 404, 200, 200, 200, 200]),
    "create": ("post", M, {"team": "vision", "name": "new"}, [401, 404, 403, 201, 201, 201]),
    "describe model": (
        "patch",
        f"{M}/vision/detector",
        {"task": "boxes"},
        [401, 404, 403, 200, 200, 200],
    ),
    "start": ("post", f"{M}/vision/new/versions", START, [401, 404, 403, 201, 201, 201]),
    "sign": ("post", V + "/parts", {"numbers": [1]}, [401, 404, 403, 409, 409, 409]),
    "parts": ("get", V + "/parts", None, [401, 404, 403, 409, 409, 409]),
    "complete": ("post", V + "/complete", {}, [401, 404, 403, 200, 200, 200]),
    "abandon": ("post", V + "/abandon", {}, [401, 404, 403, 409, 409, 409]),
    "stop": ("post", V + "/stop", {}, [401, 404, 403, 409, 409, 409]),
    "discard": ("post", V + "/discard", {}, [401, 404, 403, 409, 409, 409]),
    "describe": ("patch", V, {"metadata": {"a": 1}}, [401, 404, 403, 200, 200, 200]),
    "archive": ("post", V + "/archive", {}, [401, 404, 403, 200, 200, 200]),
    "restore": ("post", V + "/restore", {}, [401, 404, 403, 409, 409, 409]),
    "release": ("post", V + "/release", {"reason": "x"}, [401, 404, 403, 403, 403, 409]),
    "alias": (
        "put",
        f"{M}/vision/detector/aliases/staging",
        {"version": 1},
        [401, 404, 403, 200, 200, 200],
    ),
    "unalias": (
        "delete",
        f"{M}/vision/detector/aliases/staging",
        None,
        [401, 404, 403, 404, 404, 404],
    ),
    "page list": ("get", "/models", None, [302, 200, 200, 200, 200, 200]),
    "page model": ("get", "/models/vision/detector", None, [302, 404, 200, 200, 200, 200]),
    "page version": ("get", "/models/vision/detector/1", None, [302, 404, 200, 200, 200, 200]),
    "page checks": ("get", "/models/vision/detector/1/checks", None, [302, 404] + [200] * 4),
    "page edit": ("get", "/models/vision/detector/edit", None, [302, 404, 403, 200, 200, 200]),
    "page metadata": (
        "get",
        "/models/vision/detector/1/metadata",
        None,
        [302, 404, 403, 200, 200, 200],
    ),
    "page stop": ("post", "/models/vision/detector/1/stop", {}, [302, 404, 403, 409, 409, 409]),
    "page discard": (
        "post",
        "/models/vision/detector/1/discard",
        {},
        [302, 404, 403, 409, 409, 409],
    ),
    "page archive": (
        "post",
        "/models/vision/detector/1/archive",
        {},
        [302, 404, 403, 302, 302, 302],
    ),
}
WHO = ["anonymous", "stranger", "viewer", "member", "lead", "admin"]


@pytest.mark.parametrize("door", list(DOORS))
def test_each_door_opens_for_whom_it_should(
    people: People, verified: Upload, client: Client, door: str
) -> None:
    version = verified(onnx_models.linear())
    method, address, body, expected = DOORS[door]
    address = address.format(id=version.pk)
    answers = []
    for who in WHO:
        if who != "anonymous":
            client.force_login(people.named(who))
        before = ModelVersion.objects.values().get(pk=version.pk)
        events = AuditEvent.objects.count()
        is_api = address.startswith("/api")
        more = {"content_type": "application/json"} if is_api and method != "get" else {}
        answer = getattr(client, method)(address, body, **more)
        answers.append(answer.status_code)
        if answer.status_code >= 400:
            assert ModelVersion.objects.values().get(pk=version.pk) == before
            assert AuditEvent.objects.count() == events
            if is_api:
                assert answer["Content-Type"] == "application/problem+json"
                assert len(answer.json()["detail"]) > 20
        _reset(version)

    assert dict(zip(WHO, answers, strict=True)) == dict(zip(WHO, expected, strict=True))


def _reset(version: ModelVersion) -> None:
    """What one actor did must not decide what the next may do."""
    version.model.aliases.all().delete()
    fields = {"state": version.state, "metadata": {}, "next_check_at": None}
    ModelVersion.objects.filter(pk=version.pk).update(**fields)
    ModelVersion.objects.exclude(pk=version.pk).delete()
    type(version.model).objects.exclude(pk=version.model_id).delete()


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/models/vision/a%00b",
        "/api/v1/models/vision/a%00b/versions/1",
        "/api/v1/models/vision/detector/versions/99999999999999999999",
        "/api/v1/versions/99999999999999999999999",
        "/models/vision/detector/99999999999999999999",
        "/models/vision/detector/compare?v=1&v=99999999999999999999",
    ],
)
def test_impossible_names_and_numbers_are_not_found(
    people: People, client: Client, address: str
) -> None:
    client.force_login(people.admin)

    assert client.get(address).status_code == 404
