"""A delegate decides in a lead's place: while it lasts, and nothing beyond."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deployments.changes.selectors import changes as change_selectors
from deployments.changes.services import decisions, emergency_override, requests
from deployments.models import Alias, Approval
from deployments.registry.services import aliases
from deployments.states import ChangeState
from portal.accounts import delegations
from portal.accounts.models import Membership
from portal.core.errors import Forbidden, Invalid
from tests.deployments.decided_changes import approve, request_change
from tests.deployments.refusals import refused
from tests.deployments.world import World


def delegate(world: World, days: int = 7, username: str = "member") -> Any:
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
    change = request_change(world, by=world.lead2)
    assert change_selectors.waiting_for(world.member) == [change.pk]

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
    change = request_change(world, by=getattr(world, asker))

    with refused(world, Forbidden):
        approve(world.member, change)


def test_a_delegation_ends_with_its_time_its_lead_and_its_end(world: World) -> None:
    made = delegate(world)
    change = request_change(world, by=world.lead2)
    other = requests.request_deploy(actor=world.lead2, draft=world.draft("other"))
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
    change = request_change(world, by=world.lead2)

    with refused(world, Forbidden, "role_required"):
        emergency_override.approve(
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
        ("viewer", 7, "username"),
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


def test_a_delegate_moves_no_protected_alias(world: World) -> None:
    model: dict[str, Any] = {"team_slug": "vision", "model_name": "detector"}
    aliases.move(actor=world.lead, alias="champion", number=1, is_protected=True, **model)
    delegate(world)

    with refused(world, Forbidden, "role_required"):
        aliases.move(actor=world.member, alias="champion", number=2, **model)
    with refused(world, Forbidden, "role_required"):
        aliases.remove(actor=world.member, alias="champion", **model)
    with refused(world, Forbidden, "role_required"):
        aliases.move(actor=world.member, alias="shield", number=2, is_protected=True, **model)

    assert Alias.objects.get().version == world.version1


def test_a_delegate_who_became_a_viewer_decides_nothing(world: World) -> None:
    delegate(world)
    change = request_change(world, by=world.lead2)
    Membership.objects.filter(user=world.member).update(role="viewer")

    assert change_selectors.waiting_for(world.member) == []
    with refused(world, Forbidden, "role_required"):
        approve(world.member, change)
    with refused(world, Forbidden, "role_required"):
        decisions.reject(actor=world.member, change_id=change.pk, comment="no")


def test_what_a_delegate_approved_does_not_outlive_their_becoming_a_viewer(world: World) -> None:
    delegate(world)
    change = request_change(world, by=world.lead2)
    approve(world.member, change)

    Membership.objects.filter(user=world.member).update(role="viewer")
    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert Approval.objects.get().void_reason
