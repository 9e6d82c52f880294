"""Plain HTTPS requests: access, CRUD, selectors, refusals that change nothing."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.localcluster.api.manifests import (
    CONFIG_MAPS,
    SERVICES,
    config_map,
    inference_service,
)
from tests.localcluster.conftest import LocalApi, start_api, stop_api

_ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes"


_APPLY = {"Content-Type": "application/apply-patch+yaml"}


_MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
def test_health_needs_no_token(http: httpx.Client, path: str) -> None:
    assert http.get(path, headers={"Authorization": ""}).status_code == 200


@pytest.mark.parametrize("token", ["", "Bearer wrong", "Basic x"])
def test_everything_else_needs_the_token(http: httpx.Client, token: str) -> None:
    refused = http.get("/api/v1/namespaces", headers={"Authorization": token})

    assert refused.status_code == 401
    assert refused.json()["reason"] == "Unauthorized"


def test_first_start_has_system_namespaces_with_a_service_account(http: httpx.Client) -> None:
    names = {item["metadata"]["name"] for item in http.get("/api/v1/namespaces").json()["items"]}

    assert {"default", "kube-system", "slipway-gateway"} <= names
    assert http.get("/api/v1/namespaces/default/serviceaccounts/default").status_code == 200


def test_new_namespace_is_active_and_has_a_service_account(
    http: httpx.Client, namespace: str
) -> None:
    created = http.get(f"/api/v1/namespaces/{namespace}").json()

    assert created["status"] == {"phase": "Active"}
    assert http.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default").status_code == 200


def test_object_in_a_missing_namespace_is_refused(http: httpx.Client) -> None:
    refused = http.post(CONFIG_MAPS.format("nowhere"), json=config_map("a"))

    assert refused.status_code == 404
    assert refused.json()["message"] == 'namespaces "nowhere" not found'


def test_put_with_an_old_version_conflicts(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    old = http.post(url, json=config_map("a", x="1")).json()
    http.put(f"{url}/a", json=config_map("a", x="2"))

    refused = http.put(f"{url}/a", json=old)

    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert http.get(f"{url}/a").json()["data"] == {"x": "2"}


def test_status_is_written_through_its_subresource_only(http: httpx.Client, namespace: str) -> None:
    url = SERVICES.format(namespace)
    body = inference_service("detector") | {"status": {"url": "http://wrong"}}
    created = http.post(url, json=body).json()
    change = json.dumps({"status": {"url": "http://right"}, "spec": {"predictor": None}})

    changed = http.patch(f"{url}/detector/status", content=change, headers=_MERGE).json()

    assert "status" not in created
    assert changed["status"] == {"url": "http://right"}
    assert changed["spec"] == created["spec"]
    assert changed["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=a", {"a"}),
        ("app!=a", {"b", "c"}),
        ("app in (a,b)", {"a", "b"}),
        ("app notin (a, b)", {"c"}),
        ("tier", {"c"}),
        ("!tier", {"a", "b"}),
        ("app=c,tier=back", {"c"}),
    ],
)
def test_label_selectors(
    http: httpx.Client, namespace: str, selector: str, expected: set[str]
) -> None:
    url = CONFIG_MAPS.format(namespace)
    for name in ("a", "b", "c"):
        body = config_map(name)
        if name == "c":
            body["metadata"]["labels"]["tier"] = "back"
        http.post(url, json=body)

    items = http.get(url, params={"labelSelector": selector}).json()["items"]

    assert {item["metadata"]["name"] for item in items} == expected


def test_field_selectors_of_pods(http: httpx.Client, namespace: str) -> None:
    url = f"/api/v1/namespaces/{namespace}/pods"
    for name, node in (("a", "n1"), ("b", "n2")):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        http.post(url, json={"metadata": {"name": name}, "spec": spec})

    by_node = http.get(url, params={"fieldSelector": "spec.nodeName=n1"}).json()["items"]
    not_running = http.get(url, params={"fieldSelector": "status.phase!=Running"}).json()["items"]
    unknown = http.get(url, params={"fieldSelector": "spec.nonsense=1"})

    assert [item["metadata"]["name"] for item in by_node] == ["a"]
    assert len(not_running) == 2
    assert unknown.status_code == 400


def test_pages_follow_one_another_without_gaps(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    for number in range(5):
        http.post(url, json=config_map(f"c{number}"))
    names: list[str] = []
    token = ""
    while True:
        page = http.get(url, params={"limit": "2", "continue": token}).json()
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break

    assert names == [f"c{number}" for number in range(5)]


def test_secret_strings_are_stored_encoded(http: httpx.Client, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "stringData": {"key": "value"}}

    created = http.post(f"/api/v1/namespaces/{namespace}/secrets", json=body).json()

    assert created["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in created


def test_a_terminating_namespace_refuses_new_objects(http: httpx.Client, namespace: str) -> None:
    deleted = http.delete(f"/api/v1/namespaces/{namespace}").json()

    refused = http.post(CONFIG_MAPS.format(namespace), json=config_map("a"))

    assert deleted["status"] == {"phase": "Terminating"}
    assert refused.status_code == 403


def test_orphaned_dependents_stay(http: httpx.Client, namespace: str) -> None:
    url = CONFIG_MAPS.format(namespace)
    owner = http.post(url, json=config_map("owner")).json()
    dependent = config_map("dependent")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    uid = owner["metadata"]["uid"]
    dependent["metadata"]["ownerReferences"] = [reference | {"uid": uid}]
    http.post(url, json=dependent)

    http.delete(f"{url}/owner", params={"propagationPolicy": "Orphan"})

    assert http.get(f"{url}/dependent").json()["metadata"]["ownerReferences"] == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/apis/nothing.example/v1/things", 404),
        ("GET", "/api/v1/namespaces/default/pods/none", 404),
        ("GET", "/api/v1/namespaces/default/pods/none/log", 404),
        ("POST", "/api/v1/namespaces/default/configmaps/a", 405),
        ("PATCH", "/api/v1/namespaces/default/configmaps", 405),
        ("GET", "/api/v1/namespaces/default/nodes/n", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a/status", 404),
    ],
)
def test_unknown_paths_and_methods_are_refused(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = http.request(method, path)

    assert answer.status_code == status
    assert answer.json()["kind"] == "Status"


def test_restart_keeps_objects_token_certificate_and_watches(tmp_path: Path) -> None:
    process, before = start_api(tmp_path)
    with before.client() as client:
        url = CONFIG_MAPS.format("default")
        start = client.post(url, json=config_map("a", x="1")).json()["metadata"]
        client.post(url, json=config_map("b"))
    stop_api(process)

    process, after = start_api(tmp_path)

    try:
        with after.client() as client:
            kept = client.get(f"{url}/a").json()
            query = {"watch": "true", "resourceVersion": start["resourceVersion"]}
            with client.stream("GET", url, params=query) as answer:
                event = json.loads(next(answer.iter_lines()))
    finally:
        stop_api(process)
    assert after.token == before.token
    assert after.ca_path.read_bytes() == before.ca_path.read_bytes()
    assert kept["data"] == {"x": "1"}
    assert event["object"]["metadata"]["name"] == "b"


def test_busy_port_is_named(local_api: LocalApi, tmp_path: Path) -> None:

    port = local_api.base_url.rpartition(":")[2]
    command = [sys.executable, "-m", "slipway_localcluster", "--port", port, "--no-controllers"]

    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert not (tmp_path / "cluster.db").exists()
