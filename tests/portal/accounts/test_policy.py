"""The permission table of the product, walked cell by cell."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.accounts import policy
from portal.accounts.models import Role, Team, User
from portal.accounts.policy import SYSTEM, Action
from portal.core.errors import Forbidden, NotFound
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db

TABLE = {
    Action.VIEW: "viewer member lead admin",
    Action.UPLOAD: "member lead admin",
    Action.REQUEST_CHANGE: "member lead admin",
    Action.STOP: "member lead admin",
    Action.MOVE_ALIAS: "member lead admin",
    Action.MOVE_PROTECTED_ALIAS: "lead admin",
    Action.APPROVE: "lead admin",
    Action.EMERGENCY_OVERRIDE: "lead admin",
    Action.PROMOTE: "lead admin",
    Action.RELEASE_QUARANTINE: "admin",
    Action.MANAGE_MEMBERS: "lead admin",
    Action.VIEW_AUDIT: "lead admin",
    Action.MANAGE_TEAM: "admin",
    Action.MANAGE_PLATFORM: "admin",
}


def person(role: str, team: Team) -> User:
    if role == "admin":
        return make_user(is_platform_admin=True)
    return make_membership(team=team, role=Role(role)).user


def test_the_table_names_every_action() -> None:
    assert set(TABLE) == set(Action)


@pytest.mark.parametrize("role", ["viewer", "member", "lead", "admin"])
@pytest.mark.parametrize("action", list(Action))
def test_each_role_may_do_what_the_table_says(action: Action, role: str) -> None:
    team = make_team()
    actor = person(role, team)

    if role in TABLE[action].split():
        policy.require(actor, action, team)
    else:
        with pytest.raises(Forbidden, match=f"Your role in {team.slug} is {role}"):
            policy.require(actor, action, team)


@pytest.mark.parametrize("action", list(Action))
def test_for_a_stranger_nothing_exists(action: Action) -> None:
    stranger = make_membership(role=Role.LEAD).user

    with pytest.raises(NotFound):
        policy.require(stranger, action, make_team())


def test_for_the_signed_out_nothing_exists() -> None:
    with pytest.raises(NotFound):
        policy.require(AnonymousUser(), Action.VIEW, make_team())  # type: ignore[arg-type]  # on purpose


def test_an_inactive_lead_is_a_stranger() -> None:
    membership = make_membership(role=Role.LEAD, user=make_user(is_active=False))

    with pytest.raises(NotFound):
        policy.require(membership.user, Action.VIEW, membership.team)


@pytest.mark.parametrize("action", [Action.APPROVE, Action.EMERGENCY_OVERRIDE, Action.PROMOTE])
@pytest.mark.parametrize("role", ["lead", "admin"])
def test_nobody_decides_on_their_own_request(action: Action, role: str) -> None:
    team = make_team()
    actor = person(role, team)

    with pytest.raises(Forbidden, match="four eyes"):
        policy.require(actor, action, team, requester_id=actor.pk)


def test_stopping_ones_own_rollout_is_allowed() -> None:
    membership = make_membership(role=Role.MEMBER)

    policy.require(membership.user, Action.STOP, membership.team, requester_id=membership.user.pk)


def test_visible_teams_are_ones_own_or_all_for_admins_and_the_system() -> None:
    mine, other = make_membership(), make_team()

    assert list(policy.visible_teams(mine.user)) == [mine.team]
    admin = make_user(is_platform_admin=True)
    assert set(policy.visible_teams(admin)) == {mine.team, other}
    assert set(policy.visible_teams(SYSTEM)) == {mine.team, other}
