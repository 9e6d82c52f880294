"""The preview of a drain: rows of pods and nodes, and budgets as the cluster reports them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from fleet.capacity.domain.drain_preview import DrainFit, Hold
from fleet.capacity.services import drain_preview
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.core.errors import Conflict, Forbidden
from tests.accounts import make_user
from tests.fleet import objects
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("catalogue")]


def disruption_budget(*, allowed: int | None, observed: int = 1) -> dict[str, Any]:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "detector", "namespace": "vision", "generation": 1},
        "spec": {"selector": {"matchLabels": {"slipway.dev/workload": "detector-r1"}}},
        "status": {"observedGeneration": observed, **status},
    }


@pytest.fixture
def node(cluster: Cluster, detector: int, kube: FakeKube) -> Node:
    """Two pods on node-1; node-2 of the same type has one free GPU."""
    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing([objects.node(gpus=2), objects.node("node-2")], 50),
        pods=FullListing([objects.pod("detector-r1-a"), objects.pod("detector-r1-b")], 50),
        at=objects.START,
    )
    return Node.objects.get(name="node-1")


@pytest.fixture
def admin(db: None) -> User:
    return make_user(is_platform_admin=True)


def test_pods_move_where_there_is_room_and_budgets_hold_them(
    node: Node, admin: User, kube: FakeKube
) -> None:
    kube.put(disruption_budget(allowed=1))

    drain = drain_preview.preview(actor=admin, node_id=node.pk)

    assert [(m.pod.name, m.fit, m.target) for m in drain.preview.pods] == [
        ("detector-r1-a", DrainFit.FITS, "node-2"),
        ("detector-r1-b", DrainFit.NO_ROOM, ""),
    ]
    assert drain.preview.budgets is not None
    assert [(row.budget.name, row.pods, row.hold) for row in drain.preview.budgets] == [
        ("detector", 2, Hold.STEPWISE)
    ]
    assert str(drain.usd_per_hour_amount) == "1.006000"
    assert kube.applied == []


def test_a_cordoned_node_is_no_room(node: Node, admin: User, kube: FakeKube) -> None:
    Node.objects.filter(name="node-2").update(is_schedulable=False)

    drain = drain_preview.preview(actor=admin, node_id=node.pk)

    assert [moved.fit for moved in drain.preview.pods] == [DrainFit.NO_ROOM] * 2


@pytest.mark.parametrize(("allowed", "observed"), [(None, 1), (5, 0)])
def test_a_budget_without_a_current_status_is_not_known(
    node: Node, admin: User, kube: FakeKube, allowed: int | None, observed: int
) -> None:
    kube.put(disruption_budget(allowed=allowed, observed=observed))

    drain = drain_preview.preview(actor=admin, node_id=node.pk)

    assert drain.preview.held is None


def test_a_node_for_others_is_no_room_but_for_pods_of_such_a_node(node: Node, admin: User) -> None:
    reserved = [{"key": "reserved", "value": "batch", "effect": "NoSchedule"}]
    Node.objects.filter(name="node-2").update(taints=reserved)

    closed = drain_preview.preview(actor=admin, node_id=node.pk)
    Node.objects.update(taints=reserved)
    alike = drain_preview.preview(actor=admin, node_id=node.pk)

    assert [moved.fit for moved in closed.preview.pods] == [DrainFit.NO_ROOM] * 2
    assert [moved.fit for moved in alike.preview.pods] == [DrainFit.FITS, DrainFit.NO_ROOM]


def test_a_cluster_that_does_not_answer_leaves_the_rest(
    node: Node, admin: User, kube: FakeKube
) -> None:
    kube.broken = Unreachable("https://cluster does not answer")

    drain = drain_preview.preview(actor=admin, node_id=node.pk)

    assert drain.preview.budgets is None
    assert drain.problem == "https://cluster does not answer"
    assert len(drain.preview.pods) == 2


def test_only_platform_admins_and_only_nodes_that_exist(node: Node, kube: FakeKube) -> None:
    with pytest.raises(Forbidden):
        drain_preview.preview(actor=make_user(), node_id=node.pk)
    Node.objects.filter(pk=node.pk).update(gone_at=objects.START)
    with pytest.raises(Conflict, match="nothing to drain"):
        drain_preview.preview(actor=SYSTEM, node_id=node.pk)


def test_the_page_names_pods_and_budgets(
    node: Node, admin: User, kube: FakeKube, client: Client
) -> None:
    kube.put(disruption_budget(allowed=0))
    client.force_login(admin)
    first = page(client.get(f"/fleet/nodes/{node.pk}"))

    shown = page(client.get(first.link("Drain")))

    assert shown.term("Pods to move").startswith("2 1 with room")
    assert shown.term("Blocking budgets").startswith("1 ")
    assert shown.term("Saving after removal").startswith("$1.01 / h")
    assert shown.link("detector") == "/vision/deployments/detector"
    assert "no room on nodes of its type" in shown.text


def test_the_api_says_the_same(node: Node, admin: User, kube: FakeKube, client: Client) -> None:
    kube.put(disruption_budget(allowed=0))
    client.force_login(admin)
    address = f"/api/v1/nodes/{node.pk}/drain-preview"

    known = client.get(address).json()
    kube.broken = Unreachable("https://cluster does not answer")
    unknown = client.get(address).json()

    assert [(pod["name"], pod["fit"]) for pod in known["pods"]] == [
        ("detector-r1-a", "fits"),
        ("detector-r1-b", "no room"),
    ]
    assert known["budgets"] == [
        {
            "namespace": "vision",
            "name": "detector",
            "pods": 2,
            "allowed": 0,
            "hold": "allows none now",
        }
    ]
    assert (unknown["budgets"], unknown["problem"]) == (None, "https://cluster does not answer")
