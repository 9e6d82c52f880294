"""Cordon and drain with the real kubectl, and what an eviction refuses."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.localcluster.conftest import LocalApi

PODS = "/api/v1/namespaces/{}/pods"
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


@pytest.fixture
def node(http: httpx.Client, namespace: str) -> str:
    """A node of its own, so that no other test's pods are on it."""
    name = f"node-{namespace}"
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    assert http.post("/api/v1/nodes", json=body).status_code == 201
    return name


def add_pod(http: httpx.Client, namespace: str, node: str, name: str = "web-0") -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "web"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "web", "image": "web"}]},
    }
    assert http.post(PODS.format(namespace), json=pod).status_code == 201
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    patch_status(http, f"{PODS.format(namespace)}/{name}", ready)


def add_budget(http: httpx.Client, namespace: str, name: str = "web", *, allowed: int) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    assert http.post(BUDGETS.format(namespace), json=body).status_code == 201
    status = {
        "observedGeneration": 1,
        "expectedPods": 1,
        "desiredHealthy": 1,
        "currentHealthy": 1 + allowed,
        "disruptionsAllowed": allowed,
    }
    patch_status(http, f"{BUDGETS.format(namespace)}/{name}", status)


def patch_status(http: httpx.Client, url: str, status: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    body = json.dumps({"status": status})
    assert http.patch(f"{url}/status", content=body, headers=headers).status_code == 200


def evict(http: httpx.Client, namespace: str, name: str = "web-0", **more: Any) -> httpx.Response:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return http.post(f"{PODS.format(namespace)}/{name}/eviction", json=body)


def is_there(http: httpx.Client, namespace: str, name: str = "web-0") -> bool:
    return http.get(f"{PODS.format(namespace)}/{name}").status_code == 200


def test_kubectl_drains_and_uncordons(
    local_api: LocalApi, http: httpx.Client, namespace: str, node: str
) -> None:
    add_pod(http, namespace, node)
    add_budget(http, namespace, allowed=1)

    drained = local_api.kubectl("drain", node, "--force", "--timeout=20s")
    cordoned = http.get(f"/api/v1/nodes/{node}").json()["spec"]
    local_api.kubectl("uncordon", node)

    assert f"evicting pod {namespace}/web-0" in drained
    assert f"node/{node} drained" in drained
    assert cordoned["unschedulable"] is True
    assert not is_there(http, namespace)
    assert "unschedulable" not in http.get(f"/api/v1/nodes/{node}").json().get("spec", {})


def test_a_budget_refuses_and_the_pod_stays(http: httpx.Client, namespace: str, node: str) -> None:
    add_pod(http, namespace, node)
    add_budget(http, namespace, allowed=0)

    refused = evict(http, namespace)

    assert refused.status_code == 429
    status = refused.json()
    assert status["reason"] == "TooManyRequests"
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget web needs 1 healthy pods and has 1 currently",
        }
    ]
    assert is_there(http, namespace)


def test_an_eviction_counts_until_the_controller_looks_again(
    http: httpx.Client, namespace: str, node: str
) -> None:
    add_pod(http, namespace, node)
    add_pod(http, namespace, node, "web-1")
    add_budget(http, namespace, allowed=1)

    first, second = evict(http, namespace), evict(http, namespace, "web-1")

    assert (first.status_code, first.json()["status"]) == (201, "Success")
    assert second.status_code == 429
    assert is_there(http, namespace, "web-1")
    status = http.get(f"{BUDGETS.format(namespace)}/web").json()["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["web-0"])


def test_what_changes_nothing(http: httpx.Client, namespace: str, node: str) -> None:
    add_pod(http, namespace, node)
    add_budget(http, namespace, allowed=1)
    url = f"{BUDGETS.format(namespace)}/web"
    before = http.get(url).json()

    tried = evict(http, namespace, deleteOptions={"dryRun": ["All"]})
    other = evict(http, namespace, deleteOptions={"preconditions": {"uid": "another"}})
    read = http.get(f"{PODS.format(namespace)}/web-0/eviction")
    absent = evict(http, namespace, "absent")

    codes = [answer.status_code for answer in (tried, other, read, absent)]
    assert codes == [201, 409, 405, 404]
    assert is_there(http, namespace)
    assert http.get(url).json() == before


def test_two_budgets_are_an_error_and_an_unobserved_one_is_waited_for(
    http: httpx.Client, namespace: str, node: str
) -> None:
    add_pod(http, namespace, node)
    add_budget(http, namespace, allowed=1)
    add_budget(http, namespace, "other", allowed=1)

    twice = evict(http, namespace)
    http.delete(f"{BUDGETS.format(namespace)}/other")
    patch_status(http, f"{BUDGETS.format(namespace)}/web", {"observedGeneration": 0})
    waiting = evict(http, namespace)

    assert (twice.status_code, "more than one" in twice.json()["message"]) == (500, True)
    assert waiting.status_code == 429
    assert waiting.json()["details"]["retryAfterSeconds"] == 10
    assert is_there(http, namespace)
