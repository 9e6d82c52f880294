"""The watcher against the local cluster's real API server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection

from fleet.clusters.domain.capabilities import Capabilities
from fleet.kube.services import clients
from fleet.models import Cluster, GpuLease, Node, Pod
from fleet.observation.services import subscribers, sweep, workloads
from fleet.observation.services.watch import ClusterWatch
from portal.core import clock
from tests.accounts import make_team
from tests.fleet import objects
from tests.localcluster.conftest import LocalApi, start_api, stop_api

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        os.environ.get("SLIPWAY_TEST_SQLITE") == "1",
        reason="SQLite's test database is in memory, where threads lock each other out",
    ),
]


@pytest.fixture
def cluster(live_api: LocalApi) -> Iterator[Cluster]:
    clients.forget()
    yield Cluster.objects.create(
        name="live",
        kind="local",
        kubeconfig_path=str(live_api.kubeconfig),
        gateway_url="http://127.0.0.1:1",
        created_at=clock.now(),
        next_check_at=clock.now(),
    )
    clients.forget()


@pytest.fixture
def api(live_api: LocalApi) -> Iterator[httpx.Client]:
    with live_api.client() as client:
        yield client


@pytest.fixture
def watch(cluster: Cluster) -> Iterator[ClusterWatch]:
    watch = ClusterWatch(cluster.pk)
    watch.start()
    within(10, lambda: Cluster.objects.get().watch_seen_at is not None)
    yield watch
    watch.stop()
    watch.join(5)


def within(seconds: float, condition: Callable[[], bool]) -> float:
    """How long it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not so within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - started


def create(api: httpx.Client, item: dict[str, Any]) -> str:
    """With its status; returns the path of the object."""
    metadata = item["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(name, None)
    plural = {"Node": "nodes", "Pod": "pods"}[item["kind"]]
    namespace = metadata.get("namespace")
    root = f"/api/v1/namespaces/{namespace}/{plural}" if namespace else f"/api/v1/{plural}"
    if namespace:
        api.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
    made = api.post(root, json=item)
    assert made.status_code == 201, made.text
    path = f"{root}/{metadata['name']}"
    merge = {"Content-Type": "application/merge-patch+json"}
    done = api.patch(f"{path}/status", headers=merge, json={"status": item["status"]})
    assert done.status_code == 200, done.text
    return path


def unique(name: str) -> str:
    return f"{name}-{time.monotonic_ns()}"


def test_change_is_a_row_within_a_second_and_a_lease_follows_the_pod(
    cluster: Cluster, watch: ClusterWatch, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(subscribers, "_observers", [])
    subscribers.register(lambda _pk, labels: heard.extend(labels))
    namespace, node_name = unique("vision"), unique("node")
    workloads.register(
        cluster_id=cluster.pk,
        team=make_team(slug="vision"),
        namespace=namespace,
        name="detector-r1",
        labels={"deployment": "detector"},
        triton_models=["detector"],
    )

    create(api, objects.node(node_name))
    node_seconds = within(5, lambda: Node.objects.filter(name=node_name, is_ready=True).exists())
    path = create(api, objects.pod(namespace=namespace, node_name=node_name))
    pod_seconds = within(5, lambda: Pod.objects.filter(namespace=namespace, is_ready=True).exists())
    lease = GpuLease.objects.get(namespace=namespace)
    assert (lease.team_slug, lease.share_ppm, lease.ended_at) == ("vision", 1_000_000, None)
    api.delete(path, params={"gracePeriodSeconds": "0"})
    end_seconds = within(5, lambda: not GpuLease.objects.filter(ended_at=None).exists())

    assert max(node_seconds, pod_seconds, end_seconds) < 1
    assert "7" in heard


def test_the_deletion_of_a_dependent_object_is_heard_within_a_second(
    cluster: Cluster, watch: ClusterWatch, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    monkeypatch.setattr(subscribers, "_deletion_observers", [])
    subscribers.register_deletions(lambda _pk, labels: deleted.extend(labels))
    namespace = unique("vision")
    api.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
    labels = {"app.kubernetes.io/managed-by": "slipway", "slipway.dev/deployment-id": "7"}
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    made = api.post(
        path, json={"metadata": {"name": "detector-r1", "labels": labels}, "spec": spec}
    )
    assert made.status_code == 201, made.text

    api.delete(f"{path}/detector-r1")
    seconds = within(5, lambda: bool(deleted))

    assert deleted == ["7"]
    assert seconds < 1


def test_streams_hold_no_session_of_the_database(watch: ClusterWatch) -> None:
    """A cluster has a stream for each of eight kinds; one writer makes rows of all of them."""
    assert watch.cluster_id

    def sessions() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )
            (count,) = cursor.fetchone()
        return int(count)

    within(5, lambda: sessions() == 1)


def test_what_was_missed_while_nobody_watched_is_found_by_the_next_watch(
    cluster: Cluster, api: httpx.Client
) -> None:
    name = unique("node")
    path = create(api, objects.node(name))
    sweep.observe(cluster_id=cluster.pk)
    seen_at = Cluster.objects.get().last_seen_at
    api.delete(path)

    watch = ClusterWatch(cluster.pk)
    watch.start()
    within(10, lambda: Node.objects.get(name=name).gone_at is not None)
    watch.stop()
    watch.join(5)

    assert Node.objects.get(name=name).gone_at == seen_at


def test_sweep_alone_sees_the_cluster_and_its_capabilities(
    cluster: Cluster, api: httpx.Client
) -> None:
    name = unique("node")
    create(api, objects.node(name))

    sweep.observe_due()

    row = Cluster.objects.get()
    assert Node.objects.filter(name=name, gpu_count=1).exists()
    assert row.is_reachable is True
    assert row.capabilities["engines"] == [
        "kserve-triton",
        "triton",
        "kserve-vllm",
        "kserve-sglang",
    ]
    offers = Capabilities.from_json(row.capabilities)
    assert offers.offers_engine("triton-vllm").ok is False
    assert "random weights" in offers.engine_notes["kserve-vllm"]
    assert offers.engine_notes["kserve-sglang"].startswith("Instead of SGLang, ")
    assert offers.offers("keda").ok is False
    assert row.lease_until is None


def test_watch_survives_an_outage_and_a_new_address(tmp_path: Path) -> None:
    process, first = start_api(tmp_path)
    cluster = Cluster.objects.create(
        name="moves",
        kind="local",
        kubeconfig_path=str(first.kubeconfig),
        gateway_url="http://127.0.0.1:1",
        created_at=clock.now(),
    )
    watch = ClusterWatch(cluster.pk)
    watch.start()
    within(10, lambda: Cluster.objects.get().watch_seen_at is not None)

    stop_api(process)
    process, second = start_api(tmp_path)
    name = unique("node")
    with second.client() as api:
        create(api, objects.node(name))
    try:
        within(20, lambda: Node.objects.filter(name=name, is_ready=True).exists())
    finally:
        watch.stop()
        watch.join(5)
        stop_api(process)

    assert first.base_url != second.base_url
