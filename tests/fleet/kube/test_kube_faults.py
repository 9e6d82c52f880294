"""The gateway against an API server that misbehaves."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import (
    ClusterError,
    ObjectConflict,
    ObjectInvalid,
    Refused,
    Throttled,
    Unreachable,
    WatchExpired,
)
from fleet.kube.gateways.client import HttpKubeClient
from portal.core import counters
from tests.fleet.kube.faulty_server import (
    Faulty,
    answer,
    client,
    client_of,
    faulty,
    hang_up,
    status_of,
)

__all__ = ["client", "faulty"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, ObjectInvalid),
        (401, Refused),
        (403, Refused),
        (409, ObjectConflict),
        (410, WatchExpired),
        (422, ObjectInvalid),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
def test_each_status_is_its_own_error_with_the_servers_message(
    faulty: Faulty, client: HttpKubeClient, code: int, error: type[ClusterError]
) -> None:
    cause = {"field": "spec.replicas", "message": "must be positive", "reason": "Invalid"}
    faulty.answers = [answer(code, status_of(code, "in so many words", [cause]))]

    with pytest.raises(error, match="in so many words") as caught:
        client.get(resource_types.POD, "a", "b")

    assert [c.field for c in caught.value.causes] == ["spec.replicas"]
    assert len(faulty.requests) == 1


def test_throttled_says_when_to_retry(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer(429, status_of(429, "slow down"), Retry_After="7")]

    with pytest.raises(Throttled) as caught:
        client.get(resource_types.POD, "a", "b")

    assert caught.value.retry_after_seconds == 7


def test_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    client = client_of("http://127.0.0.1:1", tmp_path)

    with pytest.raises(Unreachable, match="Cluster faulty at http"):
        client.list_all(resource_types.NODE)


def _counted() -> dict[tuple[str, ...], int]:
    return counters.read(counters.CLUSTER_ERRORS)


@pytest.fixture
def uncounted() -> None:
    cache.clear()


@pytest.mark.usefixtures("uncounted")
def test_errors_of_the_cluster_are_counted_by_kind(faulty: Faulty, client: HttpKubeClient) -> None:
    statuses = (500, 503, 403, 429, 404, 409, 422)
    faulty.answers = [answer(code, status_of(code, "no")) for code in statuses]
    for _ in statuses:
        with pytest.raises(ClusterError):
            client.get(resource_types.POD, "a", "b")

    assert _counted() == {
        ("faulty", "refused"): 1,
        ("faulty", "throttled"): 1,
        ("faulty", "unreachable"): 2,
    }


@pytest.mark.usefixtures("uncounted")
def test_a_connection_that_fails_twice_is_one_error(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [hang_up]
    with pytest.raises(Unreachable):
        client.get(resource_types.POD, "a", "b")

    assert len(faulty.requests) == 2
    assert _counted() == {("faulty", "unreachable"): 1}


@pytest.mark.usefixtures("uncounted")
def test_a_pod_that_does_not_answer_is_no_error_of_the_cluster(
    faulty: Faulty, client: HttpKubeClient
) -> None:
    faulty.answers = [answer(503, status_of(503, "no endpoints"))]
    with pytest.raises(Unreachable):
        client.proxy_get("a", "b", 8002, "metrics")

    assert _counted() == {}


def test_without_valkey_the_error_is_raised_and_not_counted(tmp_path: Path, settings: Any) -> None:
    address = {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {"default": address}

    with pytest.raises(Unreachable, match="does not answer"):
        client_of("http://127.0.0.1:1", tmp_path).list_all(resource_types.NODE)


def test_closed_connection_is_tried_once_more(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [hang_up, answer(200, {"kind": "Pod"})]

    assert client.get(resource_types.POD, "a", "b") == {"kind": "Pod"}
    assert len(faulty.requests) == 2


def answer_no_json(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"no")


def test_answer_that_is_no_json_is_unreachable(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer_no_json]

    with pytest.raises(Unreachable, match="not JSON"):
        client.get(resource_types.POD, "a", "b")


def test_pages_are_followed_to_the_end(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [
        answer(200, {"metadata": {"resourceVersion": "5", "continue": "x"}, "items": [{"n": 1}]}),
        answer(200, {"metadata": {"resourceVersion": "9"}, "items": [{"n": 2}]}),
    ]

    listing = client.list_all(resource_types.POD)

    assert [item["n"] for item in listing.items] == [1, 2]
    assert listing.resource_version == "5"
    assert "continue=x" in faulty.requests[1]


def test_a_stalled_watch_is_given_up(
    faulty: Faulty, client: HttpKubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_event_then_silence(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        pod = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "6"}}
        handler.wfile.write(json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n")
        handler.wfile.flush()
        time.sleep(2)

    monkeypatch.setattr("fleet.kube.gateways.client._WATCH_GRACE_SECONDS", 0.3)
    faulty.answers = [one_event_then_silence]

    events = client.watch(resource_types.POD, resource_version="5", seconds=0)

    assert next(events).resource_version == "6"
    with pytest.raises(Unreachable):
        next(events)


def test_error_inside_a_watch_is_raised(faulty: Faulty, client: HttpKubeClient) -> None:
    faulty.answers = [answer(200, {"type": "ERROR", "object": status_of(410, "too old")})]

    with pytest.raises(WatchExpired, match="too old"):
        list(client.watch(resource_types.POD, resource_version="5"))
