"""Every decision that needs a second person, by somebody who counts as one person with the requester."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from deployments.models import BatchJob, ChangeRequest, EmergencyReview, ModelVersion, Rollout
from fleet.models import FleetAction
from portal.accounts import delegations
from portal.accounts.models import AccountHolder, Role, User
from portal.core import clock
from tests.accounts import make_membership, make_user
from tests.portal.api import every_operation
from tests.portal.api.full_world import FullWorld
from tests.portal.permissions import step_up_rows

pytestmark = [pytest.mark.django_db]
Means = AccountHolder.Means
DECISIONS: Final = (
    "post batch-jobs/{job_id}/approve",
    "post batch-jobs/{job_id}/reject",
    "post changes/{change_id}/approve",
    "post changes/{change_id}/approve-in-emergency",
    "post changes/{change_id}/reject",
    "post emergency-reviews/{review_id}/close",
    "post fleet-actions/{action_id}/approve",
    "post fleet-actions/{action_id}/reject",
    "post pipeline-changes/{pipeline_change_id}/approve",
    "post pipeline-changes/{pipeline_change_id}/approve-in-emergency",
    "post pipeline-changes/{pipeline_change_id}/reject",
    "post rollouts/{rollout_id}/finish-watch",
    "post rollouts/{rollout_id}/promote",
    "post rollouts/{rollout_id}/promote-fully",
    "post versions/{version_id}/release",
)
# They need a text before anybody asks who it is from.
BODIES: Final = {
    "post pipeline-changes/{pipeline_change_id}/reject": {"comment": "no"},
    "post batch-jobs/{job_id}/reject": {"comment": "no"},
    "post changes/{change_id}/reject": {"comment": "no"},
}


def hold(
    account: User, holder: User, *, means: str = Means.INVITATION, days_ago: float = 1
) -> None:
    at = clock.now() - timedelta(days=days_ago)
    AccountHolder.objects.create(account=account, holder=holder, means=means, at=at)


def chain(first: User, last: User) -> None:
    between = [make_user() for _ in range(3)]
    for holder, account in zip([first, *between], [*between, last], strict=True):
        hold(account, holder)


def siblings(one: User, other: User, *means: str) -> None:
    parent = make_user()
    for account, by in zip((one, other), means or (Means.INVITATION,) * 2, strict=True):
        hold(account, parent, means=by)


ONE_PERSON: Final[dict[str, Callable[[User, User], None]]] = {
    "the requester invited the decider": lambda requester, decider: hold(decider, requester),
    "the decider invited the requester": hold,
    "a chain leads to the decider": chain,
    "a chain leads to the requester": lambda requester, decider: chain(decider, requester),
    "one person invited both": siblings,
    "one made a link, and provisioned": lambda requester, decider: siblings(
        requester, decider, Means.PASSWORD_LINK, Means.SCIM
    ),
    "the decider's token provisioned the requester": lambda requester, decider: hold(
        requester, decider, means=Means.SCIM
    ),
}
TWO_PEOPLE: Final[dict[str, Callable[[User, User], None]]] = {
    "nothing links them": lambda requester, decider: None,
    "it was 31 days ago": lambda requester, decider: hold(decider, requester, days_ago=31),
    "one token provisioned both": lambda requester, decider: siblings(
        requester, decider, Means.SCIM, Means.SCIM
    ),
}


def requested_by(full: FullWorld, person: User) -> None:
    """Everything here, by this person."""
    ChangeRequest.objects.update(requester=person)
    Rollout.objects.update(requested_by=person)
    BatchJob.objects.update(requester=person)
    FleetAction.objects.update(requester=person)
    ModelVersion.objects.update(created_by=person)
    EmergencyReview.objects.update(opened_by=person)


def refusals(full: FullWorld, decider: User) -> dict[str, Any]:
    """The code of each answer to a decision."""
    client = every_operation.signed_in(decider)
    answers = {
        one: every_operation.send(client, one, full.names, **BODIES.get(one, {}))
        for one in DECISIONS
    }
    return {one: answer.json().get("code", answer.status_code) for one, answer in answers.items()}


def test_every_decision_is_in_the_table() -> None:
    decisions = {key for key in step_up_rows.DECIDES if key.islower()}

    assert decisions - set(DECISIONS) == set(), "does it need a second person?"


@pytest.mark.parametrize("case", ONE_PERSON)
def test_no_decision_by_who_counts_as_the_requester(full_world: FullWorld, case: str) -> None:
    requester, decider = full_world.world.lead, full_world.world.admin
    requested_by(full_world, requester)
    ONE_PERSON[case](requester, decider)
    before = every_operation.rows()

    codes = refusals(full_world, decider)

    assert codes == dict.fromkeys(DECISIONS, "four_eyes")
    assert every_operation.rows() == before


@pytest.mark.parametrize("case", TWO_PEOPLE)
def test_others_decide(full_world: FullWorld, case: str) -> None:
    requester, decider = full_world.world.lead, full_world.world.admin
    requested_by(full_world, requester)
    TWO_PEOPLE[case](requester, decider)

    codes = refusals(full_world, decider)

    assert [one for one, code in codes.items() if code == "four_eyes"] == []


def test_nobody_decides_on_their_own_request(full_world: FullWorld) -> None:
    requested_by(full_world, full_world.world.admin)

    codes = refusals(full_world, full_world.world.admin)

    assert codes == dict.fromkeys(DECISIONS, "four_eyes")


def test_a_delegate_of_the_second_account_neither(full_world: FullWorld) -> None:
    """The lead invites a second account as a lead, which then hands its place over."""
    world = full_world.world
    second, delegate = make_user(), make_user()
    make_membership(user=second, team=world.team, role=Role.LEAD)
    make_membership(user=delegate, team=world.team, role=Role.MEMBER)
    hold(second, world.lead)
    delegations.name_delegate(
        actor=second,
        team=world.team,
        username=delegate.username,
        starts_at=clock.now(),
        ends_at=clock.now() + timedelta(days=1),
        reason="away",
    )
    requested_by(full_world, world.lead)

    codes = refusals(full_world, delegate)

    assert codes["post changes/{change_id}/approve"] == "role_required"
    assert codes["post batch-jobs/{job_id}/approve"] == "role_required"
