"""The permission table of the product, walked cell by cell."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.accounts import policy, teams
from portal.accounts.models import Role, Team, User
from portal.accounts.policy import SYSTEM, Action
from portal.accounts.scopes import Scope, TokenGrant
from portal.core import clock
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
    Action.MANAGE_CALLERS: "lead admin",
    Action.SILENCE_ALERTS: "lead admin",
    Action.MANAGE_PRESETS: "lead admin",
    Action.CHOOSE_LOAD_TESTS: "lead admin",
    Action.REQUEST_FLEET_ACTION: "lead admin",
    Action.MANAGE_ENVIRONMENTS: "lead admin",
    Action.DECIDE_FLEET_ACTION: "admin",
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
def test_each_role_may_do_what_the_table_says(role: str) -> None:
    team = make_team()
    actor = person(role, team)

    for action in Action:
        if role in TABLE[action].split():
            policy.require(actor, action, team)
        else:
            with pytest.raises(Forbidden, match=f"is {role}. To {action}, you need") as refusal:
                policy.require(actor, action, team)
            assert f"Your role in {team.slug} is {role}." in refusal.value.message


# What a token needs besides the role of its owner; absent: no token may.
SCOPES = {
    Action.VIEW: Scope.READ,
    Action.UPLOAD: Scope.UPLOAD,
    Action.MOVE_ALIAS: Scope.UPLOAD,
    Action.REQUEST_CHANGE: Scope.REQUEST,
    Action.STOP: Scope.DECIDE,
    Action.APPROVE: Scope.DECIDE,
    Action.PROMOTE: Scope.DECIDE,
    Action.MANAGE_CALLERS: Scope.DECIDE,
    Action.SILENCE_ALERTS: Scope.DECIDE,
    Action.MANAGE_PRESETS: Scope.DECIDE,
    Action.CHOOSE_LOAD_TESTS: Scope.DECIDE,
    Action.REQUEST_FLEET_ACTION: Scope.REQUEST,
    Action.DECIDE_FLEET_ACTION: Scope.DECIDE,
    Action.MOVE_PROTECTED_ALIAS: Scope.DECIDE,
}


def with_token(user: User, *scopes: Scope, team: Team | None = None) -> User:
    user.grant = TokenGrant(1, "ci", frozenset(scopes), team.pk if team else None, clock.now())
    return user


def test_a_token_limits_what_its_owner_may_do() -> None:
    team, admin = make_team(), make_user(is_platform_admin=True)

    for action in Action:
        needed = SCOPES.get(action)
        others = [scope for scope in Scope if scope != needed]
        with pytest.raises(Forbidden) as refused:
            policy.require(with_token(admin, *others), action, team)
        code = "missing_scope" if needed else "browser_only"
        assert (action, refused.value.code) == (action, code)
        if needed:
            assert f"lacks the scope {needed}" in refused.value.message, action
            policy.require(with_token(admin, needed), action, team)


@pytest.mark.parametrize("is_admin", [True, False])
def test_outside_the_team_of_a_token_nothing_exists(is_admin: bool) -> None:
    vision, audio = make_team(), make_team()
    user = make_user(is_platform_admin=is_admin)
    if not is_admin:
        make_membership(user=user, team=vision, role=Role.LEAD)
        make_membership(user=user, team=audio, role=Role.LEAD)
    expected = "admin" if is_admin else "lead"

    with_token(user, *Scope, team=vision)

    assert list(policy.visible_teams(user)) == [vision]
    assert policy.roles_in_visible_teams(user) == [(vision, expected)]
    assert (policy.role_in(user, vision), policy.role_in(user, audio)) == (expected, None)
    assert not policy.sees_all(user)
    assert teams.get_visible(actor=user, slug=vision.slug) == vision
    with pytest.raises(NotFound):
        teams.get_visible(actor=user, slug=audio.slug)
    with pytest.raises(NotFound):
        policy.require(user, Action.VIEW, audio)


def test_the_team_of_a_token_gives_no_role_in_it() -> None:
    stranger, team = make_user(), make_team()

    with_token(stranger, *Scope, team=team)

    assert policy.role_in(stranger, team) is None
    assert list(policy.visible_teams(stranger)) == []


def test_no_token_administers_the_platform() -> None:
    admin = with_token(make_user(is_platform_admin=True), *Scope)

    with pytest.raises(Forbidden, match="Sign in with a browser"):
        policy.require_platform_admin(admin)


def test_for_a_stranger_nothing_exists() -> None:
    stranger, team = make_membership(role=Role.LEAD).user, make_team()

    for action in Action:
        with pytest.raises(NotFound):
            policy.require(stranger, action, team)


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
