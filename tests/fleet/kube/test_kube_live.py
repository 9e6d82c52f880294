"""The gateway against the local cluster's real API server, over HTTPS."""

from __future__ import annotations

import threading
import time

import pytest

from fleet.kube.domain import resource_types
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import ObjectConflict, ObjectInvalid, ObjectNotFound, Refused
from fleet.kube.gateways.client import HttpKubeClient
from tests.localcluster.conftest import LocalApi
from tests.waiting import wait_for

CONFIG_MAP = "ConfigMap"


@pytest.fixture
def client(live_api: LocalApi) -> HttpKubeClient:
    return HttpKubeClient(Connection("live", "local", kubeconfig_path=str(live_api.kubeconfig)))


@pytest.fixture
def namespace(client: HttpKubeClient) -> str:
    name = f"ns-{time.monotonic_ns()}"
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def config_map(namespace: str, name: str = "settings", **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": CONFIG_MAP,
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": "vision"}},
        "data": data,
    }


def test_applied_object_is_read_listed_and_deleted(client: HttpKubeClient, namespace: str) -> None:
    kind = client.resource_type("v1", CONFIG_MAP)

    made = client.apply(config_map(namespace, a="1"))
    listed = client.list_all(kind, namespace=namespace, labels={"team": "vision"})

    assert made["metadata"]["managedFields"][0]["manager"] == "slipway"
    assert client.get(kind, namespace, "settings")["data"] == {"a": "1"}
    assert [item["metadata"]["name"] for item in listed.items] == ["settings"]
    assert listed.items[0]["kind"] == CONFIG_MAP
    client.delete(kind, namespace, "settings")
    with pytest.raises(ObjectNotFound):
        client.get(kind, namespace, "settings")


def test_dry_run_leaves_nothing(client: HttpKubeClient, namespace: str) -> None:
    client.apply(config_map(namespace, a="1"), dry_run=True)

    with pytest.raises(ObjectNotFound):
        client.get(client.resource_type("v1", CONFIG_MAP), namespace, "settings")


def test_unknown_field_is_refused_by_name(client: HttpKubeClient, namespace: str) -> None:
    wrong = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "detector", "namespace": namespace},
        "spec": {"prots": [], "ports": [{"port": 80}]},
    }

    with pytest.raises(ObjectInvalid, match="prots"):
        client.apply(wrong)


def test_field_of_another_manager_is_a_conflict_that_names_it(
    client: HttpKubeClient, live_api: LocalApi, namespace: str
) -> None:
    client.apply(config_map(namespace, a="1"))
    with live_api.client() as other:
        answer = other.patch(
            f"/api/v1/namespaces/{namespace}/configmaps/settings",
            params={"fieldManager": "someone", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            json=config_map(namespace, a="2"),
        )
        assert answer.status_code == 200

    with pytest.raises(ObjectConflict) as caught:
        client.apply(config_map(namespace, a="3"))

    assert any(".data.a" in cause.field for cause in caught.value.causes)
    assert client.apply(config_map(namespace, a="3"), force=True)["data"] == {"a": "3"}


def test_kind_that_is_not_in_the_table_is_discovered(client: HttpKubeClient) -> None:
    lease = client.resource_type("coordination.k8s.io/v1", "Lease")

    assert (lease.plural, lease.is_namespaced) == ("leases", True)
    with pytest.raises(ObjectNotFound):
        client.resource_type("v1", "Unicorn")


def test_version_and_groups_are_read(client: HttpKubeClient) -> None:
    assert client.version().startswith("v1.")
    assert client.groups()["serving.kserve.io"][0] in {"v1beta1", "v1alpha1"}


def test_changes_arrive_while_the_watch_is_open(client: HttpKubeClient, namespace: str) -> None:
    kind = client.resource_type("v1", CONFIG_MAP)
    version = client.list_all(kind).resource_version
    arrived: list[str] = []

    def follow() -> None:
        events = client.watch(kind, resource_version=version, seconds=3600)
        mine = (event for event in events if event.object["metadata"].get("namespace") == namespace)
        arrived.extend(event.type for event in mine)

    threading.Thread(target=follow, daemon=True).start()
    client.apply(config_map(namespace, a="1"))
    client.delete(kind, namespace, "settings")

    wait_for(lambda: arrived, lambda: len(arrived) == 2)
    assert arrived == ["ADDED", "DELETED"]


def test_wrong_token_is_refused(live_api: LocalApi, tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "kubeconfig"
    path.write_text(live_api.kubeconfig.read_text().replace(live_api.token, "wrong"))
    client = HttpKubeClient(Connection("live", "kubeconfig", kubeconfig_path=str(path)))

    with pytest.raises(Refused):
        client.list_all(resource_types.POD)


def test_missing_kubeconfig_is_refused_by_name(tmp_path: object) -> None:
    connection = Connection("live", "kubeconfig", kubeconfig_path=f"{tmp_path}/absent")

    with pytest.raises(Refused, match="absent"):
        HttpKubeClient(connection)


def test_events_are_listed_by_what_they_are_about(client: HttpKubeClient, namespace: str) -> None:
    for kind in ("Pod", "Service"):
        client.apply(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"of-{kind.lower()}", "namespace": namespace},
                "involvedObject": {"kind": kind, "name": "detector", "namespace": namespace},
                "reason": "Unhealthy",
            }
        )

    listed = client.list_all(
        client.resource_type("v1", "Event"), namespace=namespace, fields="involvedObject.kind=Pod"
    )

    assert [item["metadata"]["name"] for item in listed.items] == ["of-pod"]


def test_what_a_log_is_read_with_is_sent(
    client: HttpKubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, list[tuple[str, str]]]] = []

    def request(_method: str, path: str, *, query: list[tuple[str, str]], accept: str) -> bytes:
        sent.append((path, query))
        return b"up\n"

    monkeypatch.setattr(client._transport, "request", request)

    assert client.pod_log("vision", "detector-0", tail_lines=5) == "up\n"
    client.pod_log(
        *("vision", "detector-0"),
        tail_lines=100,
        limit_bytes=1000,
        is_previous=True,
        has_timestamps=True,
    )

    path = "/api/v1/namespaces/vision/pods/detector-0/log"
    assert sent == [
        (path, [("tailLines", "5")]),
        (
            path,
            [
                ("tailLines", "100"),
                ("limitBytes", "1000"),
                ("previous", "true"),
                ("timestamps", "true"),
            ],
        ),
    ]
