"""The fleet from a terminal: what is announced of nodes, requests to move their pods, and who decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fleet.models import Cluster, FleetAction, Node
from portal.accounts.models import User
from slipway_client import Conflict, Forbidden
from slipway_client.errors import Failed
from tests.client.terminal import Terminal, connect, run, sign_in
from tests.fleet.actions.conftest import Hands, admin, hands, lead, node
from tests.fleet.conftest import catalogue, cluster, detector, kube, vision
from tests.fleet.fakes import FakeKube

__all__ = [
    "admin",
    "catalogue",
    "cluster",
    "detector",
    "hands",
    "kube",
    "lead",
    "node",
    "sign_in",
    "vision",
]
SignIn = Callable[[User], str]
pytestmark = pytest.mark.django_db
SPOT = {"key": "aws-node-termination-handler/spot-itn", "value": "", "effect": "NoSchedule"}


def test_nodes_say_what_is_announced_of_them(node: Node, lead: User, sign_in: SignIn) -> None:
    Node.objects.filter(pk=node.pk).update(taints=[SPOT], is_schedulable=False)
    sign_in(lead)

    listed = run(["nodes"])

    assert listed.code == 0, listed.err
    assert "ready, cordoned, Spot" in listed.out
    with_notice = next(iter(connect().fleet.nodes(name="node-1")))
    assert [(one.kind, one.title, one.xid) for one in with_notice.notices] == [
        ("reclaim", "Spot interruption", None)
    ]
    assert [row["name"] for row in run(["nodes", "--cluster", "local", "--json"]).json] == [
        "node-1",
        "node-2",
    ]
    assert run(["nodes", "--cluster", "lost"]).code == 2


def test_a_drain_is_requested_approved_and_done(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands, sign_in: SignIn
) -> None:
    sign_in(lead)
    asked = run(["node", "drain", "node-1", "--deadline-minutes", "30", "--comment", "kernel"])
    action = FleetAction.objects.get()
    assert asked.code == 0, asked.err
    assert f"Fleet action {action.pk}, drain of node-1 (local), is submitted" in asked.out
    assert "vision/detector: 2 pods, 2 GPUs, 1 without room elsewhere" in asked.out
    assert action.parameters["deadline_minutes"] == 30
    refused = run(["fleet-action", "approve", str(action.pk), "--yes"])
    assert (refused.code, FleetAction.objects.get().state) == (3, "submitted")

    sign_in(admin)
    declined = run(["fleet-action", "approve", str(action.pk)], Terminal("n\n"))
    assert (declined.code, FleetAction.objects.get().state) == (2, "submitted")
    approved = run(["fleet-action", "approve", str(action.pk)], Terminal("y\n"))
    assert approved.code == 0, approved.err
    assert "Approve drain of node-1 for lead?" in approved.err
    assert "vision/detector: 2 pods" in approved.err
    hands.sweep(8)

    ended = connect().fleet.wait(action.pk, seconds=1)
    assert (ended.state, ended.decided_by) == ("done", "admin")
    assert kube.evicted == [("vision", "detector-r1-a"), ("vision", "detector-r1-b")]
    assert run(["fleet-actions", "--state", "submitted", "--json"]).json == []
    shown = run(["fleet-actions"]).out
    assert "drain" in shown
    assert "All pods are" in shown


def test_an_approval_of_what_has_changed_is_refused(
    node: Node, lead: User, admin: User, hands: Hands, sign_in: SignIn
) -> None:
    sign_in(lead)
    run(["node", "cordon", "node-1"])
    sign_in(admin)
    fleet = connect().fleet
    seen = fleet.action(FleetAction.objects.get().pk)

    with pytest.raises(Conflict):
        fleet.approve(replace(seen, evidence_hash="0" * 64))

    assert FleetAction.objects.get().state == "submitted"


def test_reject_withdraw_and_what_ends_in_another_way(
    node: Node, lead: User, admin: User, hands: Hands, sign_in: SignIn
) -> None:
    sign_in(lead)
    run(["node", "cordon", "node-1", "--comment", "wrong one"])
    number = str(FleetAction.objects.get().pk)
    assert run(["fleet-action", "withdraw", number, "--comment", "a mistake"]).code == 0
    assert "is withdrawn" in run(["fleet-action", "show", number]).out
    with pytest.raises(Failed, match="is withdrawn"):
        connect().fleet.wait(int(number))
    assert run(["node", "cordon", "node-1"]).code == 0
    with pytest.raises(Forbidden):
        connect().fleet.reject(FleetAction.objects.latest("pk").pk, comment="no")

    sign_in(admin)
    number = str(FleetAction.objects.latest("pk").pk)
    assert run(["fleet-action", "reject", number]).code == 3
    assert run(["fleet-action", "reject", number, "--comment", "not now"]).code == 0
    action = FleetAction.objects.latest("pk")
    assert (action.state, action.decision_comment) == ("rejected", "not now")
    assert run(["fleet-action", "cancel", number]).code == 3


def test_arguments_that_mean_nothing_are_refused_before_anything_is_sent(
    node: Node, lead: User, hands: Hands, sign_in: SignIn
) -> None:
    sign_in(lead)

    assert run(["node", "cordon", "node-1", "--deadline-minutes", "5"]).code == 2
    missing = run(["node", "drain", "node-9"])
    assert (missing.code, "has no GPU node 'node-9'" in missing.err) == (2, True)
    assert run(["node", "drain", "node-1", "--cluster", "lost"]).code == 2
    assert run(["node", "drain", "node-1", "--deadline-minutes", "0"]).code == 3
    assert run(["fleet-action", "show", "999"]).code == 3
    assert not FleetAction.objects.exists()


def test_a_name_that_two_clusters_have_needs_the_cluster(
    node: Node, lead: User, hands: Hands, sign_in: SignIn
) -> None:
    other = Cluster.objects.get()
    other.pk, other.name = None, "west"
    other.save()
    twin = Node.objects.get(pk=node.pk)
    twin.pk, twin.cluster = None, other
    twin.save()
    sign_in(lead)

    refused = run(["node", "cordon", "node-1"])
    chosen = run(["node", "cordon", "node-1", "--cluster", "local", "--json"])

    assert refused.code == 2
    assert "Several clusters have a node 'node-1': local, west." in " ".join(refused.err.split())
    assert (chosen.json["cluster"], chosen.json["target"]) == ("local", "node-1")
