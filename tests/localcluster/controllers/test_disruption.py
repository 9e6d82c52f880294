"""What disruption budgets allow, as the controller writes it."""

from __future__ import annotations

from typing import Any

import pytest

from slipway_localcluster.controllers.disruption import DisruptionBudgets, Health, status_of
from slipway_localcluster.kinds import DEPLOYMENT, PDB, POD, REPLICA_SET
from slipway_localcluster.store import Store


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "health", "desired", "allowed"),
    [
        ({"maxUnavailable": 1}, Health(expected=3, pods=3, healthy=3), 2, 1),
        ({"maxUnavailable": 1}, Health(expected=3, pods=3, healthy=2), 2, 0),
        ({"maxUnavailable": 1}, Health(expected=3, pods=3, healthy=1), 2, 0),
        ({"maxUnavailable": "30%"}, Health(expected=4, pods=4, healthy=4), 2, 2),
        ({"maxUnavailable": 0}, Health(expected=1, pods=1, healthy=1), 1, 0),
        ({"minAvailable": 1}, Health(expected=0, pods=2, healthy=2), 1, 1),
        ({"minAvailable": "50%"}, Health(expected=3, pods=3, healthy=3), 2, 1),
        ({"minAvailable": 1}, Health(expected=0, pods=0, healthy=0), 1, 0),
    ],
)
def test_what_is_allowed_follows_from_what_is_healthy(
    spec: dict[str, Any], health: Health, desired: int, allowed: int
) -> None:
    status = status_of(budget(**spec), health, {})

    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)
    assert status["observedGeneration"] == 1


def test_replicas_of_the_owner_count_and_an_evicted_pod_no_longer(store: Store) -> None:
    owned = {"kind": "Deployment", "name": "web", "controller": True}
    made = store.create(DEPLOYMENT, _object("apps/v1", "Deployment", "web", {"replicas": 3}))
    replica_set = _object("apps/v1", "ReplicaSet", "web-1", {"replicas": 3})
    replica_set["metadata"]["ownerReferences"] = [{**owned, "uid": made["metadata"]["uid"]}]
    uid = store.create(REPLICA_SET, replica_set)["metadata"]["uid"]
    for number in range(3):
        pod = _object("v1", "Pod", f"web-1-{number}", {"containers": []})
        pod["metadata"]["labels"] = {"app": "web"}
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-1", "uid": uid}]
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.create(POD, pod)
    store.create(PDB, budget(maxUnavailable=1))

    DisruptionBudgets(store).reconcile()
    before = store.get(PDB, "default", "web")
    counted = {**before["status"], "disruptionsAllowed": 0, "disruptedPods": {"web-1-0": "now"}}
    store.replace_status(PDB, {**before, "status": counted})
    DisruptionBudgets(store).reconcile()
    evicted = store.get(PDB, "default", "web")["status"]
    store.delete(POD, "default", "web-1-0")
    DisruptionBudgets(store).reconcile()
    gone = store.get(PDB, "default", "web")["status"]

    assert before["status"]["expectedPods"] == 3
    assert before["status"]["disruptionsAllowed"] == 1
    assert (evicted["currentHealthy"], evicted["disruptionsAllowed"]) == (2, 0)
    assert "disruptedPods" not in gone
    assert (gone["currentHealthy"], gone["disruptionsAllowed"]) == (2, 0)


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
