"""The store: revisions, compare-and-swap, finalizers, history, restart."""

import threading
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster.errors import AlreadyExists, Conflict, Gone, JsonObject, NotFound
from slipway_localcluster.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, POD
from slipway_localcluster.store import Store


def _pod(name: str, **spec: Any) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "vision"}, "spec": spec}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cluster.db")


def test_create_sets_identity_and_first_generation(store: Store) -> None:
    created = store.create(POD, _pod("a"))

    assert created["apiVersion"] == "v1"
    assert created["metadata"]["generation"] == 1
    assert created["metadata"]["resourceVersion"] == str(store.revision)
    assert created == store.get(POD, "vision", "a")


def test_create_twice_is_refused(store: Store) -> None:
    store.create(POD, _pod("a"))

    with pytest.raises(AlreadyExists):
        store.create(POD, _pod("a"))

    assert len(store.list(POD)) == 1


def test_results_are_copies(store: Store) -> None:
    store.create(POD, _pod("a"))

    store.get(POD, "vision", "a")["spec"]["nodeName"] = "x"

    assert "nodeName" not in store.get(POD, "vision", "a")["spec"]


def test_replace_with_old_resource_version_conflicts(store: Store) -> None:
    first = store.create(POD, _pod("a"))
    store.replace(POD, first | {"spec": {"nodeName": "n1"}})

    with pytest.raises(Conflict):
        store.replace(POD, first | {"spec": {"nodeName": "n2"}})

    assert store.get(POD, "vision", "a")["spec"] == {"nodeName": "n1"}


def test_generation_follows_spec_only(store: Store) -> None:
    created = store.create(DEPLOYMENT, _pod("a", replicas=1))

    labelled = created | {"metadata": created["metadata"] | {"labels": {"x": "y"}}}
    after_label = store.replace(DEPLOYMENT, labelled)
    after_spec = store.replace(DEPLOYMENT, after_label | {"spec": {"replicas": 2}})

    assert after_label["metadata"]["generation"] == 1
    assert after_spec["metadata"]["generation"] == 2


def test_unchanged_writes_keep_the_resource_version(store: Store) -> None:
    created = store.create(POD, _pod("a"))
    with_status = store.replace_status(POD, created | {"status": {"phase": "Running"}})

    same = store.replace_status(POD, with_status)
    same_again = store.replace(POD, with_status)

    assert same == with_status == same_again


def test_replace_keeps_status_and_replace_status_keeps_spec(store: Store) -> None:
    created = store.create(POD, _pod("a", nodeName="n1"))
    store.replace_status(POD, created | {"status": {"phase": "Running"}, "spec": {}})
    current = store.get(POD, "vision", "a")

    store.replace(POD, current | {"status": {"phase": "Failed"}, "spec": {"nodeName": "n2"}})

    final = store.get(POD, "vision", "a")
    assert final["status"] == {"phase": "Running"}
    assert final["spec"] == {"nodeName": "n2"}


def test_delete_waits_for_finalizers(store: Store) -> None:
    obj = _pod("a")
    obj["metadata"]["finalizers"] = ["slipway.dev/test"]
    store.create(POD, obj)

    marked = store.delete(POD, "vision", "a")
    marked["metadata"]["finalizers"] = []
    store.replace(POD, marked)

    assert "deletionTimestamp" in marked["metadata"]
    assert store.find(POD, "vision", "a") is None


def test_namespace_terminates_until_its_own_finalizer_is_gone(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "vision"}})

    marked = store.delete(NAMESPACE, None, "vision")
    terminating = store.find(NAMESPACE, None, "vision")
    store.replace(NAMESPACE, marked | {"spec": {"finalizers": []}})

    assert terminating is not None
    assert terminating["status"] == {"phase": "Terminating"}
    assert store.find(NAMESPACE, None, "vision") is None


def test_delete_with_another_uid_is_refused(store: Store) -> None:
    store.create(POD, _pod("a"))

    with pytest.raises(Conflict):
        store.delete(POD, "vision", "a", uid="other")

    assert store.find(POD, "vision", "a") is not None


def test_a_deleted_pod_stays_until_its_node_agent_deletes_it_without_grace(tmp_path: Path) -> None:
    store = Store(tmp_path / "drained.db", has_node_agent=True)
    store.create(POD, _pod("a", nodeName="n", terminationGracePeriodSeconds=60))

    marked = store.delete(POD, "vision", "a")
    annotated = store.replace(POD, marked | {"metadata": marked["metadata"] | {"labels": {}}})
    shortened = store.delete(POD, "vision", "a", grace_period_seconds=5)
    kept = store.delete(POD, "vision", "a")
    store.delete(POD, "vision", "a", grace_period_seconds=0)

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 60
    assert annotated["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    assert shortened["metadata"]["deletionGracePeriodSeconds"] == 5
    assert kept == shortened
    assert store.find(POD, "vision", "a") is None


@pytest.mark.parametrize("spec", [{}, {"nodeName": "n"}])
def test_a_pod_that_does_not_run_is_deleted_at_once(tmp_path: Path, spec: dict[str, str]) -> None:
    store = Store(tmp_path / "drained.db", has_node_agent=True)
    created = store.create(POD, _pod("a", **spec))
    store.replace_status(POD, created | {"status": {"phase": "Failed"}})

    store.delete(POD, "vision", "a")

    assert store.find(POD, "vision", "a") is None


def test_missing_object_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match='pods "a" not found'):
        store.get(POD, "vision", "a")


def test_list_filters_by_namespace_and_labels(store: Store) -> None:
    for name, namespace, label in (("a", "one", "x"), ("b", "one", "y"), ("a", "two", "x")):
        store.create(
            CONFIG_MAP, {"metadata": {"name": name, "namespace": namespace, "labels": {"l": label}}}
        )

    assert len(store.list(CONFIG_MAP)) == 3
    assert len(store.list(CONFIG_MAP, "one")) == 2
    assert len(store.list(CONFIG_MAP, labels={"l": "x"})) == 2


def test_history_has_every_change_in_order_and_survives_a_restart(tmp_path: Path) -> None:
    first = Store(tmp_path / "cluster.db")
    start = first.revision
    created = first.create(POD, _pod("a"))
    first.replace(POD, created | {"spec": {"nodeName": "n"}})
    first.delete(POD, "vision", "a")
    first.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "vision"}})
    first.close()

    again = Store(tmp_path / "cluster.db")

    events = list(again.events_since(start, POD))
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.revision for event in events] == [start + 1, start + 2, start + 3]
    assert events[1].previous == created
    assert again.revision == start + 4
    assert again.get(CONFIG_MAP, "vision", "c")["metadata"]["name"] == "c"


def test_compacted_history_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db", history_limit=10)
    start = store.revision
    for number in range(30):
        store.create(POD, _pod(f"p{number}"))

    with pytest.raises(Gone):
        list(store.events_since(start))

    assert len(list(store.events_since(store.revision - 10))) == 10


def test_wait_returns_when_another_thread_writes(store: Store) -> None:
    before = store.revision
    writer = threading.Timer(0.05, store.create, (POD, _pod("a")))
    writer.start()

    after = store.wait(before, 5.0)

    writer.join()
    assert after == before + 1


def test_concurrent_writers_never_share_a_revision(store: Store) -> None:
    def write(prefix: int) -> None:
        for number in range(25):
            store.create(POD, _pod(f"{prefix}-{number}"))

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    revisions = {item["metadata"]["resourceVersion"] for item in store.list(POD)}
    assert len(revisions) == 100
