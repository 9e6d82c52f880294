"""The client of the agents against a real API server: cache, writes, errors, a restarted server."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slipway_localcluster.client import kubeconfig
from slipway_localcluster.client.http_api import HttpClusterApi
from slipway_localcluster.client.kubeconfig import Connection
from slipway_localcluster.controllers import free_ports
from slipway_localcluster.errors import AlreadyExists, ApiError, Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import CONFIG_MAP, POD, SERVICE
from tests.localcluster.conftest import LocalApi, start_api, stop_api
from tests.waiting import wait_for


@pytest.fixture
def api(local_api: LocalApi) -> Iterator[HttpClusterApi]:
    started = HttpClusterApi(kubeconfig.read(local_api.kubeconfig), (POD,))
    started.start()
    yield started
    started.close()


def _pod(namespace: str, name: str = "a") -> JsonObject:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_a_write_is_read_back_from_the_cache_at_once(api: HttpClusterApi, namespace: str) -> None:
    created = api.create(POD, _pod(namespace))

    annotated = api.replace(
        POD, created | {"metadata": created["metadata"] | {"annotations": {"x": "y"}}}
    )
    running = api.replace_status(POD, annotated | {"status": {"phase": "Running"}})

    found = api.find(POD, namespace, "a")
    assert found == running
    assert running["status"] == {"phase": "Running"}
    assert running["metadata"]["annotations"] == {"x": "y"}
    assert api.list(POD, namespace) == [running]


def test_changes_of_other_clients_arrive_by_watch(
    api: HttpClusterApi, local_api: LocalApi, namespace: str
) -> None:
    other = HttpClusterApi(kubeconfig.read(local_api.kubeconfig), ())
    before = api.revision
    other.create(POD, _pod(namespace))
    assert api.wait(before, 10) > before
    wait_for("the pod is in the cache", lambda: api.find(POD, namespace, "a"))

    other.delete(POD, namespace, "a", grace_period_seconds=0)

    wait_for("the pod is removed", lambda: api.find(POD, namespace, "a") is None)


def test_kinds_without_a_watch_are_read_from_the_server(
    api: HttpClusterApi, namespace: str
) -> None:
    metadata = {"name": "settings", "namespace": namespace}
    created = api.create(CONFIG_MAP, {"metadata": metadata, "data": {"a": "1"}})

    assert api.find(CONFIG_MAP, namespace, "settings") == created
    assert api.find(SERVICE, namespace, "none") is None
    assert [item["kind"] for item in api.list(CONFIG_MAP, namespace)] == ["ConfigMap"]


def test_refusals_are_the_errors_of_the_store(api: HttpClusterApi, namespace: str) -> None:
    created = api.create(POD, _pod(namespace))
    api.replace_status(POD, created | {"status": {"phase": "Running"}})

    with pytest.raises(Conflict):
        api.replace_status(POD, created | {"status": {"phase": "Failed"}})
    with pytest.raises(AlreadyExists):
        api.create(POD, _pod(namespace))
    with pytest.raises(NotFound):
        api.delete(POD, namespace, "other", uid="x")
    with pytest.raises(Conflict):
        api.delete(POD, namespace, "a", uid="another")

    assert api.find(POD, namespace, "a")


def test_the_cache_recovers_after_a_restart_of_the_server(tmp_path: Path) -> None:
    # None that a client draws while the server is down.
    port = free_ports.take_one()
    process, local_api = start_api(tmp_path, port=port)
    api = HttpClusterApi(kubeconfig.read(local_api.kubeconfig), (POD,))
    api.start()
    api.create(POD, _pod("default"))
    stop_api(process)
    with pytest.raises(ApiError, match="default/pods"):
        api.create(POD, _pod("default", "b"))

    process, _ = start_api(tmp_path, port=port)

    try:
        api.create(POD, _pod("default", "b"))
        other = HttpClusterApi(kubeconfig.read(local_api.kubeconfig), ())
        other.delete(POD, "default", "a")
        wait_for("the watch goes on", lambda: api.find(POD, "default", "a") is None)
    finally:
        api.close()
        stop_api(process)
    assert [item["metadata"]["name"] for item in api.list(POD)] == ["b"]


def test_a_group_that_the_server_does_not_know_is_not_found() -> None:
    """A real API server answers a path of such a group with plain text instead of a Status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"404 page not found\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        with pytest.raises(NotFound):
            HttpClusterApi(Connection(url, ssl.create_default_context(), None), ()).list(POD)
    finally:
        server.shutdown()
        server.server_close()
