"""Cordon, uncordon and drain by request: who requests and approves, and what is told."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from fleet.actions.services import decisions, requests
from fleet.kube.domain.errors import Unreachable
from fleet.models import FleetAction, Node
from portal.accounts.models import Role, Team, User
from portal.accounts.scopes import Scope, TokenGrant
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid, Unavailable
from portal.notifications import vault
from portal.notifications.models import Channel, Delivery, Notice
from tests.accounts import make_membership, make_team
from tests.fleet.actions.conftest import Hands
from tests.fleet.actions.node_actions import refused, state_of
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def test_nobody_approves_the_own_request_and_only_admins_approve(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    own = requests.request_cordon(actor=admin, node_id=node.pk)

    with refused(kube, Forbidden, "four_eyes"):
        hands.approve(own, admin)
    with refused(kube, Forbidden, "role_required"):
        hands.approve(own, lead)
    with refused(kube, Forbidden, "role_required"):
        decisions.reject(actor=lead, action_id=own.pk, comment="no")
    with refused(kube, Forbidden, "role_required"):
        decisions.withdraw(actor=lead, action_id=own.pk)


def test_members_request_nothing_and_a_token_of_one_team_neither(
    node: Node, vision: Team, lead: User, kube: FakeKube, hands: Hands
) -> None:
    member = make_membership(team=vision, role=Role.MEMBER).user
    scopes = frozenset({Scope.READ, Scope.REQUEST})
    with refused(kube, Forbidden, "role_required"):
        requests.request_drain(actor=member, node_id=node.pk)
    lead.grant = TokenGrant(1, "ci", scopes, vision.pk, clock.now())
    with refused(kube, Forbidden, "whole_fleet_required"):
        requests.request_drain(actor=lead, node_id=node.pk)
    lead.grant = TokenGrant(1, "ci", frozenset({Scope.READ}), None, clock.now())
    with refused(kube, Forbidden, "missing_scope"):
        requests.request_drain(actor=lead, node_id=node.pk)


@pytest.mark.parametrize("minutes", [-1, 0, 4, 1441, 10**9])
def test_a_deadline_has_bounds(
    node: Node, lead: User, kube: FakeKube, hands: Hands, minutes: int
) -> None:
    with refused(kube, Invalid, "invalid"):
        requests.request_drain(actor=lead, node_id=node.pk, deadline_minutes=minutes)


def test_one_open_action_for_each_node(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    first = requests.request_cordon(actor=lead, node_id=node.pk)

    with refused(kube, Conflict, "action_open"):
        requests.request_drain(actor=lead, node_id=node.pk)
    with pytest.raises(IntegrityError), transaction.atomic():
        FleetAction.objects.create(
            cluster=node.cluster,
            kind="drain",
            target_kind="node",
            target="node-1",
            requester=lead,
            created_at=hands.at,
        )
    decisions.withdraw(actor=lead, action_id=first.pk)
    assert requests.request_drain(actor=lead, node_id=node.pk).state == "submitted"


def test_what_changes_nothing_or_is_not_permitted_is_refused_before_anybody_approves(
    node: Node, lead: User, kube: FakeKube, hands: Hands
) -> None:
    with refused(kube, Conflict, "no_change"):
        requests.request_uncordon(actor=lead, node_id=node.pk)
    kube.allows = lambda attributes: attributes.get("subresource") != "eviction"
    with refused(kube, Conflict, "not_permitted"):
        requests.request_drain(actor=lead, node_id=node.pk)
    kube.broken = Unreachable("away")
    with refused(kube, Unavailable):
        requests.request_drain(actor=lead, node_id=node.pk)
    Node.objects.filter(pk=node.pk).update(gone_at=hands.at)
    with refused(kube, Conflict, "node_gone"):
        requests.request_cordon(actor=lead, node_id=node.pk)


def test_another_deployment_on_the_node_makes_the_approver_look_again(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = requests.request_drain(actor=lead, node_id=node.pk)
    shown = action.evidence_hash
    pod = node.pods.get(name="detector-r1-b")
    pod.workload = None
    pod.save()

    with pytest.raises(Conflict, match="Review it again"):
        decisions.approve(actor=admin, action_id=action.pk, evidence_hash=shown)
    action.refresh_from_db()

    assert (action.state, action.evidence_hash == shown) == ("submitted", False)
    hands.approve(action, admin)
    assert state_of(action)[0] == "approved"


def test_requests_expire_and_so_does_an_approval_that_never_started(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    forgotten = requests.request_cordon(actor=lead, node_id=node.pk)
    hands.sweep(1, seconds=14 * 24 * 3600)
    late = requests.request_cordon(actor=lead, node_id=node.pk)
    hands.approve(late, admin)
    hands.sweep(1, seconds=3600)

    assert state_of(forgotten)[0] == state_of(late)[0] == "expired"
    assert kube.patched == []


def test_admins_the_requester_and_the_teams_of_the_pods_are_notified(
    node: Node, vision: Team, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    other = make_team()
    owners: list[dict[str, Any]] = [
        {"user": admin},
        {"user": lead},
        {"team": vision},
        {"team": other},
    ]
    for index, owner in enumerate(owners):
        Channel.objects.create(
            name=f"c{index}",
            kind="webhook",
            sealed_address=vault.seal("https://x.example/"),
            hint="x",
            created_by=admin,
            created_at=hands.at,
            **owner,
        )
    action = requests.request_drain(actor=lead, node_id=node.pk, comment="kernel update")
    hands.approve(action, admin)
    hands.sweep(8)

    sent = [
        (delivery.notice.event, delivery.channel.name)
        for delivery in Delivery.objects.order_by("notice_id", "channel__name")
    ]
    assert sent == [
        ("fleet.requested", "c0"),
        ("fleet.requested", "c1"),
        ("fleet.decided", "c0"),
        ("fleet.decided", "c1"),
        ("fleet.decided", "c1"),
        ("fleet.decided", "c2"),
        ("fleet.finished", "c0"),
        ("fleet.finished", "c1"),
    ]
    to_team = Notice.objects.get(team=vision)
    assert to_team.message.startswith(
        "Pods of these deployments are evicted and start on other nodes: detector."
    )
