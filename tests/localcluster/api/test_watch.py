"""Watches over HTTPS: order, resumption, selectors, 410, bookmarks, time limit."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from slipway_localcluster.kinds import CONFIG_MAP
from slipway_localcluster.selectors import Selector
from slipway_localcluster.store import Store
from slipway_localcluster.watch import Hub, WatchRequest, stream
from tests.localcluster.api.manifests import CONFIG_MAPS, config_map


def _events(http: httpx.Client, url: str, **query: str) -> Iterator[dict[str, Any]]:
    with http.stream(
        "GET", url, params={"watch": "true", "timeoutSeconds": "5", **query}
    ) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            yield json.loads(line)


def _create(http: httpx.Client, namespace: str, name: str, **data: str) -> str:
    answer = http.post(CONFIG_MAPS.format(namespace), json=config_map(name, **data))
    return str(answer.json()["metadata"]["resourceVersion"])


def test_watch_from_a_list_delivers_each_change_once_and_in_order(
    http: httpx.Client, namespace: str
) -> None:
    url = CONFIG_MAPS.format(namespace)
    _create(http, namespace, "before")
    start = http.get(url).json()["metadata"]["resourceVersion"]
    _create(http, namespace, "a")
    http.put(f"{url}/a", json=config_map("a", x="1"))
    http.delete(f"{url}/a")

    events = _events(http, url, resourceVersion=start)

    observed = [next(events) for _ in range(3)]
    assert [event["type"] for event in observed] == ["ADDED", "MODIFIED", "DELETED"]
    assert {event["object"]["metadata"]["name"] for event in observed} == {"a"}


def test_watch_without_version_begins_with_existing_objects(
    http: httpx.Client, namespace: str
) -> None:
    _create(http, namespace, "a")

    first = next(_events(http, CONFIG_MAPS.format(namespace)))

    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")


def test_watch_delivers_a_change_made_while_it_waits(
    http: httpx.Client, local_api: Any, namespace: str
) -> None:
    url = CONFIG_MAPS.format(namespace)
    start = http.get(url).json()["metadata"]["resourceVersion"]
    query = {"watch": "true", "timeoutSeconds": "60", "resourceVersion": start}
    with http.stream("GET", url, params=query) as answer, local_api.client() as writer:
        began = time.monotonic()
        _create(writer, namespace, "late")
        line = next(answer.iter_lines())

    assert json.loads(line)["object"]["metadata"]["name"] == "late"
    assert time.monotonic() - began < 30


def test_watch_resumes_after_the_last_observed_version(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    start = http.get(url).json()["metadata"]["resourceVersion"]
    for name in ("a", "b", "c"):
        _create(http, namespace, name)
    first = next(_events(http, url, resourceVersion=start))
    observed = first["object"]["metadata"]["resourceVersion"]

    events = _events(http, url, resourceVersion=observed)

    names = [next(events)["object"]["metadata"]["name"] for _ in range(2)]
    assert names == ["b", "c"]


def test_leaving_the_selector_reads_as_deleted(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    start = _create(http, namespace, "a")
    moved = config_map("a")
    moved["metadata"]["labels"] = {"app": "other"}
    http.put(f"{url}/a", json=moved)

    left = next(_events(http, url, resourceVersion=start, labelSelector="app=a"))
    entered = next(_events(http, url, resourceVersion=start, labelSelector="app=other"))

    assert left["type"] == "DELETED"
    assert entered["type"] == "ADDED"


def test_a_version_newer_than_the_server_is_gone(http: httpx.Client, namespace: str) -> None:
    event = next(_events(http, CONFIG_MAPS.format(namespace), resourceVersion="999999999"))

    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_version_older_than_the_history_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db", history_limit=10)
    for number in range(30):
        metadata = {"name": f"c{number}", "namespace": "n"}
        store.create(CONFIG_MAP, {"metadata": metadata})
    request = WatchRequest(
        kind=CONFIG_MAP,
        namespace="n",
        selector=Selector(),
        resource_version="3",
        timeout_seconds=1,
        allows_bookmarks=False,
        sends_initial_events=False,
        render=lambda obj: obj,
    )

    async def is_disconnected() -> bool:
        return False

    async def first_line() -> bytes:
        lines = stream(store, Hub(store), request, is_disconnected)
        return await anext(aiter(lines))

    event = json.loads(asyncio.run(first_line()))
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")


def test_watch_ends_at_its_timeout(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    start = http.get(url).json()["metadata"]["resourceVersion"]

    began = time.monotonic()
    events = list(_events(http, url, resourceVersion=start, timeoutSeconds="1"))

    assert events == []
    assert 0.5 < time.monotonic() - began < 30


def test_streamed_list_ends_with_a_marked_bookmark(http: httpx.Client, namespace: str) -> None:
    _create(http, namespace, "a")

    events = _events(
        http,
        CONFIG_MAPS.format(namespace),
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    )

    assert next(events)["type"] == "ADDED"
    bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    annotations = bookmark["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_bad_version_is_an_error_event(http: httpx.Client, namespace: str) -> None:
    event = next(_events(http, CONFIG_MAPS.format(namespace), resourceVersion="x"))

    assert (event["type"], event["object"]["code"]) == ("ERROR", 400)
