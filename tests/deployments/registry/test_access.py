"""Every door of the registry, as everyone."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import Client

from deployments.models import ModelVersion
from portal.audit.models import AuditEvent
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db
M = "/api/v1/models"
V = "/api/v1/versions/{id}"
START: dict[str, object] = {"files": [{"path": "b.onnx", "size_bytes": 9}]}

# door: method, address, body, then status as anonymous, stranger, viewer, member, lead, admin
DOORS: dict[str, tuple[str, str, dict[str, object] | None, list[int]]] = {
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
    "files": ("get", V + "/files", None, [401, 404, 200, 200, 200, 200]),
    "complete files": (
        "post",
        V + "/files/complete",
        {"paths": ["a.onnx"]},
        [401, 404, 403, 409, 409, 409],
    ),
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
        {},
        [401, 404, 403, 404, 404, 404],
    ),
    "page list": ("get", "/vision/models", None, [302, 404, 200, 200, 200, 200]),
    "page model": ("get", "/vision/models/detector", None, [302, 404, 200, 200, 200, 200]),
    "page version": ("get", "/vision/models/detector/1", None, [302, 404, 200, 200, 200, 200]),
    "page checks": ("get", "/vision/models/detector/1/checks", None, [302, 404] + [200] * 4),
    "page edit": ("get", "/vision/models/detector/edit", None, [302, 404, 403, 200, 200, 200]),
    "page metadata": (
        "get",
        "/vision/models/detector/1/metadata",
        None,
        [302, 404, 403, 200, 200, 200],
    ),
    "page stop": ("post", "/vision/models/detector/1/stop", {}, [302, 404, 403, 409, 409, 409]),
    "page discard": (
        "post",
        "/vision/models/detector/1/discard",
        {},
        [302, 404, 403, 409, 409, 409],
    ),
    "page archive": (
        "post",
        "/vision/models/detector/1/archive",
        {},
        [302, 404, 403, 302, 302, 302],
    ),
}
WHO = ["anonymous", "stranger", "viewer", "member", "lead", "admin"]


def test_each_operation_is_allowed_only_for_those_who_may(people: People, verified: Upload) -> None:
    version = verified(onnx_models.linear())
    clients = {who: Client() for who in WHO}
    for who in WHO[1:]:
        clients[who].force_login(people.named(who))

    answers = {
        door: [knock(client, door, version) for client in clients.values()] for door in DOORS
    }

    assert answers == {door: expected for door, (*_, expected) in DOORS.items()}


def knock(client: Client, door: str, version: ModelVersion) -> int:
    """The status; the changes of the request are rolled back."""
    method, address, body, _ = DOORS[door]
    address = address.format(id=version.pk)
    before = ModelVersion.objects.values().get(pk=version.pk)
    events = AuditEvent.objects.count()
    is_api = address.startswith("/api")
    more = {"content_type": "application/json"} if is_api and method != "get" else {}
    with transaction.atomic():
        answer = getattr(client, method)(address, body, **more)
        if answer.status_code >= 400:
            assert ModelVersion.objects.values().get(pk=version.pk) == before
            assert AuditEvent.objects.count() == events
            if is_api:
                assert answer["Content-Type"] == "application/problem+json"
                assert len(answer.json()["detail"]) > 20
        transaction.set_rollback(True)
    return int(answer.status_code)
