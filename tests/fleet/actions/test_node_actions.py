"""Cordon, uncordon and drain: what is shown, and what the cluster gets."""

from __future__ import annotations

import itertools
from datetime import timedelta
from functools import partial

import pytest

from fleet.actions.domain.states import ACTION, ActionState
from fleet.actions.services import advance, audit_actions, decisions, requests, transitions
from fleet.kube.domain.errors import Unreachable
from fleet.models import FleetAction, Node
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict
from tests.accounts import make_user
from tests.fleet.actions.conftest import Hands, owned
from tests.fleet.actions.node_actions import budget_refuses, is_schedulable, refused, state_of
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def test_a_drain_cordons_evicts_and_ends(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = requests.request_drain(actor=lead, node_id=node.pk, comment="kernel update")
    hands.sweep(3)
    untouched = (list(kube.patched), list(kube.evicted))
    hands.approve(action, admin)
    hands.sweep(6)

    assert untouched == ([], [])
    assert state_of(action) == ("done", "All pods are evicted.")
    assert kube.patched == [
        ("Node", "node-1", {"spec": {"unschedulable": True}, "metadata": {"uid": "uid-node-1"}})
    ]
    assert kube.evicted == [("vision", "detector-r1-a"), ("vision", "detector-r1-b")]
    assert (action.progress["pods"], action.progress["evicted"]) == (2, 2)
    trail = AuditEvent.objects.filter(object_type="fleetaction").order_by("id")
    assert [(event.action, event.actor_name) for event in trail] == [
        ("fleet_action.requested", "lead"),
        ("fleet_action.approved", "admin"),
        ("fleet_action.started", "slipway"),
        ("fleet_action.done", "slipway"),
    ]
    assert trail[0].object_label == "drain of node-1 on local"


def test_cordon_and_uncordon(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    cordon = requests.request_cordon(actor=lead, node_id=node.pk)
    hands.approve(cordon, admin)
    hands.sweep(4)
    cordoned = is_schedulable(kube)
    Node.objects.filter(pk=node.pk).update(is_schedulable=False)
    uncordon = requests.request_uncordon(actor=admin, node_id=node.pk)
    hands.approve(uncordon, make_user(is_platform_admin=True))
    hands.sweep(4)

    assert (state_of(cordon)[0], state_of(uncordon)[0]) == ("done", "done")
    assert (cordoned, is_schedulable(kube)) == (False, True)
    assert kube.evicted == []


def test_a_budget_holds_the_drain_until_it_allows(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.held["vision", "detector-r1-a"] = budget_refuses("detector")
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(8)
    waiting = state_of(action)
    held, evicted = action.progress["blocked"], list(kube.evicted)
    kube.held.clear()
    hands.sweep(3)

    assert waiting == (
        "applying",
        "1 of 2 pods left. 1 cannot be evicted now.",
    )
    assert held == [
        {
            "pod": "vision/detector-r1-a",
            "why": "The disruption budget detector needs 1 healthy pods and has 1",
        }
    ]
    assert evicted == [("vision", "detector-r1-b")]
    assert state_of(action)[0] == "done"


def test_it_fails_at_its_deadline_and_says_what_held_it(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.held["vision", "detector-r1-a"] = budget_refuses("detector")
    action = requests.request_drain(actor=lead, node_id=node.pk, deadline_minutes=5)
    hands.approve(action, admin)
    hands.sweep(12)

    state, reason = state_of(action)
    assert state == "failed"
    assert reason.startswith("It was not done by its deadline. 1 of 2 pods left.")
    assert not is_schedulable(kube)
    assert action.next_check_at is None


def test_cancel_restores_the_node(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.held["vision", "detector-r1-a"] = budget_refuses("detector")
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(6)
    decisions.cancel(actor=lead, action_id=action.pk, reason="wrong node")
    hands.sweep(3)

    assert state_of(action) == ("canceled", "wrong node The node is back in its previous state.")
    assert is_schedulable(kube)
    assert ("vision", "detector-r1-a") not in kube.evicted


def test_cancel_of_a_node_that_was_cordoned_before_leaves_it_cordoned(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.objects["Node", "", "node-1"]["spec"]["unschedulable"] = True
    kube.held["vision", "detector-r1-a"] = budget_refuses("detector")
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(5)
    decisions.cancel(actor=admin, action_id=action.pk)
    hands.sweep(3)

    assert state_of(action)[0] == "canceled"
    assert not is_schedulable(kube)


def test_pods_that_nothing_starts_again_are_evicted_only_when_that_was_requested(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    single = owned("notebook")
    del single["metadata"]["ownerReferences"]
    kube.put(single)
    careful = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(careful, admin)
    hands.sweep(4)
    untouched = (list(kube.evicted), is_schedulable(kube))
    bold = requests.request_drain(actor=lead, node_id=node.pk, evict_unmanaged=True)
    hands.approve(bold, admin)
    hands.sweep(7)

    assert state_of(careful)[0] == "failed"
    assert "1 pod has no controller" in careful.state_reason
    assert untouched == ([], True)
    assert state_of(bold)[0] == "done"
    assert ("vision", "notebook") in kube.evicted


def test_pods_of_daemon_sets_static_and_finished_ones_stay(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    agent, static = owned("agent"), owned("static")
    agent["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    kube.put(agent, static, owned("finished", phase="Succeeded"))
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(6)

    assert state_of(action)[0] == "done"
    assert [name for _, name in kube.evicted] == ["detector-r1-a", "detector-r1-b"]


def test_a_node_that_was_replaced_is_not_touched(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = requests.request_drain(actor=lead, node_id=node.pk)
    kube.objects["Node", "", "node-1"]["metadata"]["uid"] = "another"
    hands.approve(action, admin)
    hands.sweep(4)

    state, reason = state_of(action)
    assert (state, kube.patched, kube.evicted) == ("failed", [], [])
    assert "was replaced by another node of its name" in reason


@pytest.mark.parametrize("after", ["patch", "eviction"])
def test_a_worker_that_dies_after_an_effect_repeats_nothing(
    node: Node,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    after: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pass ends before it is recorded; the next one finds what the cluster has."""
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(2)
    if after == "eviction":
        hands.sweep(1)
        kube.on_evict = [KeyboardInterrupt()]
    else:
        monkeypatch.setattr(advance, "_record", _die)
    with pytest.raises(KeyboardInterrupt):
        hands.sweep(1)
    monkeypatch.undo()
    hands = Hands(monkeypatch)
    hands.at = clock.now() + timedelta(hours=0, minutes=20)
    hands.sweep(8)

    assert state_of(action)[0] == "done"
    assert len(kube.patched) == 1
    assert sorted(kube.evicted) == [("vision", "detector-r1-a"), ("vision", "detector-r1-b")]


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_cluster_that_is_away_is_tried_again(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = requests.request_cordon(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(1)
    kube.broken = Unreachable("https://cluster does not answer")
    hands.sweep(1)
    away = state_of(action)
    kube.broken = None
    hands.sweep(4, seconds=90)

    assert away == (
        "applying",
        "The cluster could not be changed: https://cluster does not answer",
    )
    assert state_of(action)[0] == "done"


def test_only_legal_transitions(node: Node, lead: User, kube: FakeKube, hands: Hands) -> None:
    action = requests.request_cordon(actor=lead, node_id=node.pk)
    moved, refusals = [], 0
    for old, new in itertools.product(ActionState, ActionState):
        FleetAction.objects.filter(pk=action.pk).update(state=old)
        action.refresh_from_db()
        move = partial(
            transitions.move, actor=SYSTEM, action=action, to=new, audited=audit_actions.DONE
        )
        if new in ACTION[old]:
            move()
            moved.append(state_of(action)[0] == new)
        else:
            with refused(kube, Conflict, "action_state"):
                move()
            refusals += 1

    assert (moved, refusals) == ([True] * 12, 88)


def test_a_held_drain_of_one_pod_counts_one_pod(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.objects.pop(("Pod", "vision", "detector-r1-b"))
    kube.held["vision", "detector-r1-a"] = budget_refuses("detector")
    action = requests.request_drain(actor=lead, node_id=node.pk)
    hands.approve(action, admin)
    hands.sweep(8)

    assert state_of(action) == ("applying", "1 of 1 pod left. 1 cannot be evicted now.")
