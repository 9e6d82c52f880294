"""Values that pass for text and numbers until something stores or computes with them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db
NUL, SURROGATE, HUGE = b"\\u0000", b"\\ud800", b"9" * 40
DRAFT = b'"version_id": 1, "cluster_id": 1, "name": "x"'
SPEC = b'"engine": "triton", "instance_type": "g5.xlarge", "network": {"access": "open"}'
TENSOR = b'{"name": "x", "datatype": "BYTES", "shape": [1], "data": ["a"]}'
GOLDEN = "models/vision/detector/golden-requests"
OBSERVATIONS = "deployments/{deployment_id}/observations"
BODIES = [
    (
        "post",
        GOLDEN,
        b'{"name": "%s", "request": {"inputs": [' + TENSOR + b']}, "expected": [' + TENSOR + b"]}",
    ),
    (
        "post",
        GOLDEN,
        b'{"name": "x", "request": {"inputs": [' + TENSOR + b'], "parameters": {"%s": 1}}, '
        b'"expected": [' + TENSOR + b"]}",
    ),
    ("post", OBSERVATIONS, b'{"revision": 1, "kind": "labels", "values": ["%s"]}'),
    ("patch", "versions/{version_id}", b'{"metadata": {"notes": "%s"}}'),
    ("patch", "versions/{version_id}", b'{"metadata": {"free_text": "%s"}}'),
    ("patch", "versions/{version_id}", b'{"metadata": {"%s": "x"}}'),
    ("patch", "versions/{version_id}", b'{"metadata": {"labels": {"a": "%s"}}}'),
    ("patch", "models/vision/detector", b'{"description": "%s"}'),
    ("post", "models", b'{"team": "%s", "name": "x"}'),
    ("post", "models", b'{"team": "vision", "name": "%s"}'),
    (
        "post",
        "models/vision/detector/versions",
        b'{"files": [{"path": "%s.onnx", "size_bytes": 10}]}',
    ),
    (
        "post",
        "models/vision/detector/versions",
        b'{"files": [{"path": "x.onnx", "size_bytes": 10}], "metadata": {"notes": "%s"}}',
    ),
    ("post", "deployments", b"{" + DRAFT + b', "spec": {' + SPEC + b', "env": {"%s": "x"}}}'),
    ("post", "deployments", b"{" + DRAFT + b', "spec": {' + SPEC + b', "env": {"APP_X": "%s"}}}'),
    ("post", "deployments", b"{" + DRAFT + b', "comment": "%s", "spec": {' + SPEC + b"}}"),
    ("post", "deployments", b"{" + DRAFT + b', "spec": {' + SPEC + b', "cpu": "%s"}}'),
    ("post", "changes/{change_id}/approve", b'{"evidence_hash": "%s"}'),
    ("post", "rollouts/{rollout_id}/abort", b'{"reason": "%s"}'),
    ("post", "teams", b'{"slug": "%s", "name": "x"}'),
    ("put", "teams/vision/members/member", b'{"role": "%s"}'),
]
NUMBERS = [
    (
        "post",
        GOLDEN,
        b'{"name": "x", "version_id": %s, "request": {"inputs": [' + TENSOR + b"]}, "
        b'"expected": [' + TENSOR + b"]}",
    ),
    ("post", OBSERVATIONS, b'{"revision": %s, "kind": "lengths", "values": [1]}'),
    ("post", OBSERVATIONS, b'{"revision": 1, "kind": "lengths", "values": [%s]}'),
    (
        "post",
        "models/vision/detector/versions",
        b'{"files": [{"path": "x.onnx", "size_bytes": %s}]}',
    ),
    ("patch", "versions/{version_id}", b'{"metadata": {"accuracy": %s}}'),
    ("put", "models/vision/detector/aliases/new", b'{"version": %s}'),
    ("post", "versions/{version_id}/parts", b'{"numbers": [%s]}'),
    ("post", "versions/{version_id}/release", b'{"reason": "x", "days": %s}'),
    ("patch", "teams/vision", b'{"quota_gpus": %s, "monthly_budget_amount": "1"}'),
    ("patch", "teams/vision", b'{"quota_gpus": 1, "monthly_budget_amount": "%s000"}'),
    ("post", "teams", b'{"slug": "x", "name": "x", "quota_gpus": %s}'),
    ("post", "deployments", b"{" + DRAFT + b', "spec": {' + SPEC + b', "gpus": %s}}'),
    ("post", "deployments", b"{" + DRAFT + b', "spec": {' + SPEC + b', "max_replicas": %s}}'),
    (
        "post",
        "deployments/{deployment_id}/changes",
        b'{"kind": "roll_back", "revision_number": %s}',
    ),
    *(
        (
            "post",
            "deployments/{deployment_id}/changes",
            b'{"kind": "canary", "version_id": 1, "steps": [{%s}]}' % step,
        )
        for step in (
            b'"weight": %s, "soak_seconds": 0, "min_requests": 0',
            b'"weight": 5, "soak_seconds": %s, "min_requests": 0',
            b'"weight": 5, "soak_seconds": 0, "min_requests": %s',
        )
    ),
]
QUERIES = [
    "nodes?cluster=%s",
    "pods?cluster=%s",
    "deployments?limit=%s",
    "changes?cursor=%s",
    "versions/%s",
    "models/vision/detector/versions/%s",
    "clusters/%s/shares",
    "me/tokens/%s",
]


def client_of(full: FullWorld) -> Any:
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(full.world.admin)
    return client


def send(full: FullWorld, method: str, path: str, body: bytes) -> Any:
    # Ids of the templates above stand for the world's own.
    body = body.replace(b'"version_id": 1', b'"version_id": %d' % full.names["version_id"])
    body = body.replace(b'"cluster_id": 1', b'"cluster_id": %d' % full.names["cluster_id"])
    address = f"/api/v1/{path.format(**full.names)}"
    with transaction.atomic():
        answer = client_of(full).generic(method, address, body, content_type="application/json")
        transaction.set_rollback(True)
    return answer


def test_texts_that_the_database_cannot_keep_are_refused(full_world: FullWorld) -> None:
    statuses = {}
    for method, path, body in BODIES:
        for value in (NUL, SURROGATE):
            answer = send(full_world, method, path, body % value)
            statuses[method, path, body, value] = answer.status_code

    refusals = {400, 404, 409, 422}
    assert {sent: status for sent, status in statuses.items() if status not in refusals} == {}


def test_numbers_that_nothing_can_hold_are_refused(full_world: FullWorld) -> None:
    statuses = {}
    for method, path, body in NUMBERS:
        for value in (HUGE, b"-" + HUGE, b"1e999", b"NaN", b"2147483648", b"9223372036854775808"):
            answer = send(full_world, method, path, body % value)
            statuses[method, path, body, value] = answer.status_code

    refusals = {400, 404, 409, 422}
    assert {sent: status for sent, status in statuses.items() if status not in refusals} == {}


@pytest.mark.parametrize("value", ["9" * 40, "9223372036854775808", "-1", "%F0%9F%8D%8E", "%ED%A0"])
def test_addresses_with_odd_numbers_are_answered(full_world: FullWorld, value: str) -> None:
    client = client_of(full_world)

    statuses = {path: client.get(f"/api/v1/{path % value}").status_code for path in QUERIES}

    assert {
        p: status for p, status in statuses.items() if status not in {200, 400, 404, 405, 422}
    } == {}


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "x"])
def test_times_at_the_edge_of_the_calendar_are_answered(full_world: FullWorld, when: str) -> None:
    client = client_of(full_world)

    for path in ("costs", "usage", "costs/series", "costs.csv", "costs/ledger.csv"):
        for query in ({"start": when}, {"end": when}, {"start": when, "end": when}):
            assert client.get(f"/api/v1/{path}", query).status_code in {200, 422}


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
        ("9999-12-31T00:00:00Z", "9999-12-31T23:00:00Z"),
    ],
)
def test_periods_at_the_edge_of_the_calendar_are_refused(
    full_world: FullWorld, start: str, end: str
) -> None:
    client = client_of(full_world)

    for path in ("costs", "usage", "costs/series", "costs.csv", "costs/ledger.csv"):
        answer = client.get(f"/api/v1/{path}", {"start": start, "end": end})
        assert (path, answer.status_code) == (path, 422)
