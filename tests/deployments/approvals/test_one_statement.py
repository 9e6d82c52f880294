"""Who may approve is one statement, read for one change or for many rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.accounts import policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import Delegation, Team, User
from portal.accounts.policy import Action
from portal.core import clock
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]
_PEOPLE = ("member", "lead", "lead2", "viewer", "stranger", "admin")


def _delegate(world: World, lead: User, to: User) -> None:
    at = clock.now()
    Delegation.objects.create(
        team=world.team,
        lead=lead,
        delegate=to,
        starts_at=at - timedelta(hours=1),
        ends_at=at + timedelta(hours=1),
        created_at=at,
    )


@pytest.mark.parametrize("requester", _PEOPLE)
def test_rights_of_many_rows_are_those_of_one(world: World, requester: str) -> None:
    """With a member who stands for one lead, and for both."""
    asked = getattr(world, requester)
    own = Team.objects.get(slug="vision")

    def answers() -> dict[str, tuple[bool, bool]]:
        return {
            name: (
                policy.is_allowed(person, Action.APPROVE, own, requester_id=asked.pk),
                ApproverRights(person).may_approve(own.pk, asked),
            )
            for name in _PEOPLE
            if (person := getattr(world, name))
        }

    without = answers()
    _delegate(world, world.lead, world.member)
    for_one = answers()
    _delegate(world, world.lead2, world.member)
    for_both = answers()

    for found in (without, for_one, for_both):
        assert {name: one for name, (one, _) in found.items()} == {
            name: many for name, (_, many) in found.items()
        }
    allowed = {name for name, (one, _) in without.items() if one}
    assert allowed == {"lead", "lead2", "admin"} - {requester}
    is_member_allowed = [found["member"][0] for found in (without, for_one, for_both)]
    assert is_member_allowed == [
        False,
        requester not in ("member", "lead"),
        requester != "member",
    ]


def test_who_is_deactivated_may_not(world: World) -> None:
    User.objects.filter(pk=world.lead.pk).update(is_active=False)
    world.lead.refresh_from_db()

    assert not ApproverRights(world.lead).may_approve(world.team.pk, world.member)
    assert not policy.is_allowed(
        world.lead, Action.APPROVE, world.team, requester_id=world.member.pk
    )
