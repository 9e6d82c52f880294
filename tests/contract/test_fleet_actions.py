"""Cordon, drain and uncordon through an API server, with the permissions that `cluster_rbac` grants."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from fleet.actions.services import advance, decisions, requests
from fleet.models import Cluster, FleetAction, Node
from fleet.observation.domain import parse
from fleet.observation.services import nodes as node_rows
from portal.accounts.models import User
from portal.core import clock
from tests.accounts import make_user
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(somebody: Kubectl, cluster_id: int) -> Iterator[Node]:
    """A node of its own, without a machine, as the portal observed it."""
    with ready_node(somebody, f"drained-{secrets.token_hex(4)}") as name:
        cluster = Cluster.objects.get(pk=cluster_id)
        live = parse.node(somebody.get("node", name))
        yield node_rows.write(cluster, [live], at=clock.now())[0]


@pytest.fixture
def pod(somebody: Kubectl, namespace: str, node: Node) -> str:
    """Running and ready, says its status: nothing runs there."""
    spec = {"nodeName": node.name, "containers": [{"name": "web", "image": "web"}]}
    metadata = {"name": "web-0", "namespace": namespace, "labels": {"app": "web"}}
    somebody.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    patch(somebody, namespace, "pod", "web-0", {"status": status}, "--subresource=status")
    return "web-0"


def patch(
    admin: Kubectl, namespace: str, kind: str, name: str, body: dict[str, Any], *more: str
) -> None:
    admin.patch(kind, name, f"--namespace={namespace}", *more, patch=body)


def set_budget(admin: Kubectl, namespace: str, *, needed: int) -> None:
    """What the budget needs of its one pod. The status is the controller's, where there is one."""
    spec = {"minAvailable": needed, "selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web", "namespace": namespace}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    admin.apply([{**kind, "metadata": metadata, "spec": spec}])
    live = admin.get("pdb", "web", f"--namespace={namespace}")
    status = {
        "observedGeneration": live["metadata"]["generation"],
        "expectedPods": 1,
        "currentHealthy": 1,
        "desiredHealthy": needed,
        "disruptionsAllowed": 1 - needed,
    }
    patch(admin, namespace, "pdb", "web", {"status": status}, "--subresource=status")


class Worker:
    """Sweeps, with a clock that runs ahead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = clock.now()
        monkeypatch.setattr(clock, "now", lambda: self.at)

    def state_of(self, action: FleetAction) -> tuple[str, str]:
        self.at += timedelta(seconds=15)
        advance.sweep()
        action.refresh_from_db()
        return action.state, action.state_reason

    def run_until(self, action: FleetAction, state: str) -> None:
        wait_for(f"{action} {state}", lambda: self.state_of(action)[0] == state)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(monkeypatch)


def approved(action: FleetAction, admin: User) -> FleetAction:
    return decisions.approve(actor=admin, action_id=action.pk, evidence_hash=action.evidence_hash)


def is_cordoned(somebody: Kubectl, node: Node) -> bool:
    return bool(somebody.get("node", node.name)["spec"].get("unschedulable"))


def test_a_drain_waits_for_the_budget_and_ends(
    somebody: Kubectl, namespace: str, node: Node, pod: str, worker: Worker
) -> None:
    lead, admin = (make_user(is_platform_admin=True) for _ in range(2))
    set_budget(somebody, namespace, needed=1)
    action = requests.request_drain(actor=lead, node_id=node.pk, evict_unmanaged=True)
    approved(action, admin)

    wait_for("refusal", lambda: "cannot be evicted" in worker.state_of(action)[1])
    why = action.progress["blocked"]
    there = somebody.get("pod", pod, f"--namespace={namespace}")["metadata"]
    cordoned = is_cordoned(somebody, node)
    set_budget(somebody, namespace, needed=0)
    wait_for("eviction", lambda: bool(worker.state_of(action) and action.progress.get("evicted")))
    # Where a control plane waits for the node's kubelet, which there is none of.
    gone = ("--force", "--grace-period=0", "--ignore-not-found")
    somebody.run("delete", "pod", pod, f"--namespace={namespace}", *gone)
    worker.run_until(action, "done")

    assert [item["pod"] for item in why] == [f"{namespace}/web-0"]
    assert "The disruption budget web needs 1 healthy pods" in why[0]["why"]
    assert "deletionTimestamp" not in there
    assert cordoned


def test_cordon_and_uncordon(somebody: Kubectl, node: Node, worker: Worker) -> None:
    lead, admin = (make_user(is_platform_admin=True) for _ in range(2))
    cordon = requests.request_cordon(actor=lead, node_id=node.pk)
    approved(cordon, admin)
    worker.run_until(cordon, "done")
    cordoned = is_cordoned(somebody, node)
    Node.objects.filter(pk=node.pk).update(is_schedulable=False)
    uncordon = requests.request_uncordon(actor=lead, node_id=node.pk)
    approved(uncordon, admin)
    worker.run_until(uncordon, "done")

    assert (cordoned, is_cordoned(somebody, node)) == (True, False)


@pytest.fixture
def a100(somebody: Kubectl, cluster_id: int, node: Node) -> Node:
    """The node with the labels that NVIDIA's GPU operator gives to four A100."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/gpu.deploy.mig-manager": "true",
        "nvidia.com/mig.config": "all-disabled",
        "nvidia.com/mig.config.state": "success",
    }
    somebody.patch("node", node.name, patch={"metadata": {"labels": labels}})
    live = parse.node(somebody.get("node", node.name))
    node_rows.write(Cluster.objects.get(pk=cluster_id), [live], at=clock.now())
    node.refresh_from_db()
    return node


def test_a_mig_layout_is_requested_of_the_mig_manager(
    somebody: Kubectl, a100: Node, worker: Worker
) -> None:
    """There is no GPU: the test plays the MIG manager and the device plugin."""
    lead, admin = (make_user(is_platform_admin=True) for _ in range(2))
    action = requests.request_mig_layout(actor=lead, node_id=a100.pk, layout="all-1g.5gb")
    approved(action, admin)
    wait_for("label", lambda: worker.state_of(action)[1] == "Waiting for the MIG manager.")
    labels = somebody.get("node", a100.name)["metadata"]["labels"]
    cordoned = is_cordoned(somebody, a100)
    done = {"nvidia.com/mig.config.state": "success"}
    somebody.patch("node", a100.name, patch={"metadata": {"labels": done}})
    wait_for("resources", lambda: "Waiting for the device plugin" in worker.state_of(action)[1])
    slices = {"nvidia.com/mig-1g.5gb": "28", "nvidia.com/gpu": "0"}
    status = {"capacity": slices, "allocatable": slices}
    somebody.patch("node", a100.name, "--subresource=status", patch={"status": status})
    worker.run_until(action, "done")

    assert labels["nvidia.com/mig.config"] == "all-1g.5gb"
    assert "nvidia.com/mig.config.state" not in labels
    assert cordoned
    assert action.state_reason == "The node offers 28 x nvidia.com/mig-1g.5gb."
    assert not is_cordoned(somebody, a100)
