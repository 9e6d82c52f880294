"""A delegate decides in a lead's place: while it lasts, and nothing beyond."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployments.domain.states import ChangeState
from deployments.models import Approval
from deployments.selectors import changes as change_selectors
from deployments.services import changes, emergencies
from portal.accounts import delegations
from portal.accounts.models import Membership
from portal.core.errors import Forbidden, Invalid
from tests.deployments.delivery.conftest import World
from tests.deployments.delivery.decided import approve, ask
from tests.deployments.delivery.refusals import refused


def delegate(world: World, days: int = 7, username: str = "member") -> object:
    at = world.clock.at
    return delegations.name_delegate(
        actor=world.lead,
        team=world.team,
        username=username,
        starts_at=at,
        ends_at=at + timedelta(days=days),
        reason="holidays",
    )


def test_a_delegate_approves_in_the_leads_place_while_it_lasts(world: World) -> None:
    delegate(world)
    change = ask(world, by=world.lead2)
    assert [one.pk for one in change_selectors.inbox(world.member)] == [change.pk]

    approve(world.member, change)

    approval = Approval.objects.get()
    assert (approval.as_role, approval.stands_for) == ("delegate", world.lead)
    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


@pytest.mark.parametrize("asker", ["member", "lead"])
def test_a_delegate_approves_neither_their_own_nor_the_leads_request(
    world: World, asker: str
) -> None:
    delegate(world)
    change = ask(world, by=getattr(world, asker))

    with refused(world, Forbidden):
        approve(world.member, change)


def test_a_delegation_ends_with_its_time_its_lead_and_its_end(world: World) -> None:
    made = delegate(world)
    change = ask(world, by=world.lead2)
    other = changes.request_deploy(actor=world.lead2, draft=world.draft("other"))
    world.clock.move(7 * 24 * 3600 + 1)
    with refused(world, Forbidden, "role_required"):
        approve(world.member, change)

    made = delegate(world)
    delegations.end(actor=world.lead2, team=world.team, delegation_id=made.pk)
    with refused(world, Forbidden, "role_required"):
        approve(world.member, change)

    delegate(world)
    Membership.objects.filter(user=world.lead).update(role="member")
    with refused(world, Forbidden, "role_required"):
        approve(world.member, other)


def test_a_delegate_promotes_nothing_and_breaks_no_glass(world: World) -> None:
    delegate(world)
    change = ask(world, by=world.lead2)

    with refused(world, Forbidden, "role_required"):
        emergencies.approve(
            actor=world.member,
            change_id=change.pk,
            evidence_hash=change.evidence_hash,
            reason="Checkout is down, and the lead is away.",
        )


@pytest.mark.parametrize(
    ("username", "days", "field"),
    [
        ("lead", 7, "username"),
        ("lead2", 7, "username"),
        ("stranger", 7, "username"),
        ("member", 0, "ends_at"),
        ("member", 61, "ends_at"),
    ],
)
def test_a_delegation_that_cannot_be_is_refused(
    world: World, username: str, days: int, field: str
) -> None:
    with refused(world, Invalid) as raised:
        delegate(world, days=days, username=username)
    assert field in raised[0].fields
