"""A change that a service account requested: who decides on it, and that no token of the account does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from deployments.approvals.selectors import approvals
from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.selectors import changes
from deployments.changes.services import decisions, requests
from deployments.models import Approval, ApprovalRule, ChangeRequest
from deployments.states import ChangeState
from portal.accounts import service_accounts, tokens
from portal.accounts.models import ApiToken, Membership, Role, User
from portal.accounts.tokens import NewToken
from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]


@pytest.fixture
def account(world: World) -> NewToken:
    return service_accounts.create(
        actor=world.lead, team=world.team, name="ci", scopes=["upload", "request"]
    )


def requested(world: World, account: NewToken) -> ChangeRequest:
    user = tokens.user_of(account.plain)
    assert user is not None
    return requests.request_deploy(actor=user, draft=world.draft())


def approve(actor: User, change: ChangeRequest) -> None:
    decisions.approve(actor=actor, change_id=change.pk, evidence_hash=change.evidence_hash)


def test_another_lead_approves_what_it_requested(world: World, account: NewToken) -> None:
    change = requested(world, account)

    approve(world.lead2, change)
    change.refresh_from_db()

    assert change.requester.username == "vision:ci"
    assert change.state != ChangeState.SUBMITTED


def test_who_holds_its_token_counts_as_the_requester(world: World, account: NewToken) -> None:
    change = requested(world, account)

    with pytest.raises(Forbidden, match="created or rotated a token") as refused:
        approve(world.lead, change)
    change.refresh_from_db()

    assert refused.value.code == "four_eyes"
    assert change.state == ChangeState.SUBMITTED
    assert not Approval.objects.exists()
    assert not changes.may_approve(world.lead, change)[0]
    assert changes.may_approve(world.lead2, change) == (True, "")
    assert not changes.may_override(world.lead, change)
    assert world.lead not in approvals.people_still_needed(change)
    assert world.lead2 in approvals.people_still_needed(change)
    assert not approvals.ApproverContext(world.lead).is_waiting_for_actor(change)


def test_a_token_that_ended_weeks_ago_is_no_longer_held(world: World, account: NewToken) -> None:
    service_accounts.rotate(
        actor=world.lead2, team=world.team, name="ci", token_id=account.row.pk, overlap_hours=0
    )
    user = User.objects.get(username="vision:ci")
    change = requests.request_deploy(actor=user, draft=world.draft())
    assert not changes.may_approve(world.lead, change)[0]

    ApiToken.objects.filter(pk=account.row.pk).update(revoked_at=clock.now() - timedelta(days=31))

    assert changes.may_approve(world.lead, change) == (True, "")
    assert not changes.may_approve(world.lead2, change)[0]


@pytest.mark.parametrize("action", ["approve", "reject", "approve-in-emergency"])
def test_it_decides_nothing_by_rest_also_as_a_lead_with_any_scope(
    action: str, world: World, account: NewToken
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    Membership.objects.filter(user=account.row.user).update(role=Role.LEAD)
    ApiToken.objects.filter(pk=account.row.pk).update(scopes="read upload request decide")
    client = APIClient(headers={"Authorization": f"Bearer {account.plain}"})
    body = {"evidence_hash": change.evidence_hash, "comment": "x", "reason": "everything is down"}

    answer = client.post(f"/api/v1/changes/{change.pk}/{action}", body, format="json")
    change.refresh_from_db()

    assert answer.status_code in (403, 422), answer.content
    assert change.state == ChangeState.SUBMITTED
    assert not Approval.objects.exists()


def test_no_rule_can_name_it_and_one_that_does_changes_nothing(
    world: World, account: NewToken
) -> None:
    with pytest.raises(Invalid, match="people"):
        rules.make(
            actor=world.admin, draft=RuleDraft(name="r", role="named", people=("vision:ci",))
        )
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    rule = rules.make(actor=world.admin, draft=RuleDraft(name="r", role="named", people=("lead2",)))
    ApprovalRule.objects.get(pk=rule.pk).people.set([account.row.user])

    with pytest.raises(Forbidden, match="service account"):
        approve(account.row.user, change)

    assert account.row.user not in approvals.people_still_needed(change)
    assert not Approval.objects.exists()
