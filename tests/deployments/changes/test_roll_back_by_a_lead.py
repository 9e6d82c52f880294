"""A lead goes back to the revision that served before, whose approvals count again; all else needs new ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.approvals.selectors import approvals
from deployments.changes.services import requests
from deployments.models import (
    Approval,
    ApprovalRule,
    ChangeRequest,
    Deployment,
    Revision,
    Rollout,
)
from deployments.rollouts.services import actions
from deployments.states import ChangeState
from portal.accounts import tokens
from portal.accounts.models import User
from portal.accounts.scopes import Scope
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.notifications.models import Notice
from tests.deployments.canaries import soak, start, view
from tests.deployments.world import World
from tests.page import page

ONE = "/vision/deployments/detector"
CONFIRM = f"{ONE}/roll-back?revision=1"
SignIn = Callable[[User], Client]


def promoted(world: World) -> Deployment:
    """r2 replaced r1."""
    return world.play("promoted fully", lambda: _promote(world))


def _promote(world: World) -> Deployment:
    deployment, rollout = start(world)
    shown = view(world, rollout)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    deployment.refresh_from_db()
    assert (deployment.stable_revision.number, Rollout.objects.get().phase) == (2, "completed")
    return deployment


def approved_before() -> str:
    first = ChangeRequest.objects.get(kind="deploy")
    return f"r1 was approved by lead in request {first.pk}"


def roll_back(world: World, actor: User, number: int = 1) -> ChangeRequest:
    deployment = Deployment.objects.get()
    return requests.request_roll_back(
        actor=actor, deployment_id=deployment.pk, revision_number=number
    )


def carry_out(world: World, name: str = "detector-r1") -> Deployment:
    deployment = Deployment.objects.get()
    world.reconcile_now(deployment)
    world.cluster.make_ready(name)
    for _ in range(3):
        soak(world, deployment, 16)
    deployment.refresh_from_db()
    return deployment


def test_a_lead_rolls_back_with_one_click_and_what_changes_in_sight(
    world: World, signed_in: SignIn
) -> None:
    promoted(world)
    client, notices = signed_in(world.lead), Notice.objects.count()
    head = page(client.get(ONE)).part("deployment-head")
    assert "Roll back to r1, detector:1" in head.text
    assert head.hidden("revision") == "1"
    confirm = page(client.get(CONFIRM))
    assert f"No approval needed: {approved_before()}" in confirm.text
    assert confirm.hidden("revision") == "1"
    assert "Choose another revision" in confirm.links
    assert {"Field": "Version", "Now": "detector:2", "Requested": "detector:1"} in confirm.rows

    sent = client.post(CONFIRM, {"revision": "1", "comment": "wrong answers"})

    assert (sent.status_code, sent["Location"]) == (302, ONE)
    change = ChangeRequest.objects.get(kind="roll_back")
    assert (change.state, change.revision) == (ChangeState.APPROVED, Revision.objects.get(number=1))
    assert "Rolling back to r1." in page(client.get(ONE)).text
    deployment = carry_out(world)
    change.refresh_from_db()
    assert (change.state, deployment.stable_revision.number) == (ChangeState.DONE, 1)
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert Revision.objects.count() == 2
    assert not Approval.objects.filter(change=change).exists()
    audited = AuditEvent.objects.get(action="change.approved", object_id=str(change.pk))
    assert (audited.actor_name, audited.reason) == ("lead", approved_before())
    assert not Notice.objects.filter(event="approval.requested")[notices:].exists()


def test_its_page_shows_by_what_it_was_approved(world: World, signed_in: SignIn) -> None:
    promoted(world)
    change = roll_back(world, world.lead)

    text = page(signed_in(world.viewer).get(f"/approvals/{change.pk}")).text

    assert "1 of 1 approval given" in text
    assert approved_before() in text


def test_a_member_asks_for_an_approval(world: World, signed_in: SignIn) -> None:
    promoted(world)
    text = page(signed_in(world.member).get(CONFIRM)).text
    assert "An approver (not you) signs off" in text
    assert "No approval needed" not in text

    change = roll_back(world, world.member)

    assert change.state == ChangeState.SUBMITTED


def test_a_stricter_rule_needs_its_approvals(world: World, signed_in: SignIn) -> None:
    promoted(world)
    ApprovalRule.objects.create(
        name="two for production",
        environments=["production"],
        role="lead",
        needed=2,
        created_at=clock.now(),
        changed_at=clock.now(),
    )

    change = roll_back(world, world.lead)

    assert change.state == ChangeState.SUBMITTED
    assert "An approver (not you)" in page(signed_in(world.lead).get(CONFIRM)).text


def test_a_rule_that_comes_before_it_begins_stops_it(world: World) -> None:
    promoted(world)
    change = roll_back(world, world.lead)
    ApprovalRule.objects.create(
        name="two for production",
        environments=["production"],
        role="lead",
        needed=2,
        created_at=clock.now(),
        changed_at=clock.now(),
    )

    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert Rollout.objects.count() == 1


def test_an_emergency_override_is_no_approval_of_a_rule(world: World) -> None:
    promoted(world)
    Approval.objects.filter(change__kind="deploy").update(is_emergency=True)

    assert roll_back(world, world.lead).state == ChangeState.SUBMITTED


def test_what_was_rolled_back_needs_a_new_approval(world: World) -> None:
    promoted(world)
    roll_back(world, world.lead)
    carry_out(world)

    change = roll_back(world, world.lead, number=2)

    assert change.state == ChangeState.SUBMITTED


@pytest.mark.parametrize("state", ["quarantined", "archived"])
def test_a_version_that_may_not_serve_is_not_returned_to(world: World, state: str) -> None:
    promoted(world)
    type(world.version1).objects.filter(pk=world.version1.pk).update(state=state)

    with pytest.raises(Exception, match=state):
        roll_back(world, world.lead)

    assert not ChangeRequest.objects.filter(kind="roll_back").exists()


@pytest.mark.parametrize(
    ("scope", "state"),
    [(Scope.REQUEST, ChangeState.SUBMITTED), (Scope.DECIDE, ChangeState.APPROVED)],
)
def test_a_token_rolls_back_at_once_only_if_it_may_decide(
    world: World, scope: Scope, state: str
) -> None:
    deployment = promoted(world)
    world.lead.authenticated_at = world.clock.at
    scopes = {Scope.REQUEST, scope}
    made = tokens.create(actor=world.lead, name="terminal", days=1, scopes=sorted(scopes))

    answer = Client().post(
        f"/api/v1/deployments/{deployment.pk}/changes",
        {"kind": "roll_back", "revision_number": 1},
        content_type="application/json",
        headers={"Authorization": f"Bearer {made.plain}"},
    )

    assert answer.status_code == 201, answer.json()
    change = ChangeRequest.objects.get(kind="roll_back")
    assert change.state == state
    is_missing = approvals.status_of(change).missing > 0
    assert is_missing is (state == ChangeState.SUBMITTED)
