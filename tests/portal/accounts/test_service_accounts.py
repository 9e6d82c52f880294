"""Service accounts: made by who manages the team, rotated with an overlap, revoked, and never a lead."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction

from portal.accounts import delegations, people, policy, service_accounts, teams, tokens
from portal.accounts.models import ApiToken, Delegation, Membership, Role, Team, User
from portal.accounts.policy import Action
from portal.accounts.scopes import Scope
from portal.accounts.tokens import NewToken
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
PEOPLE_ONLY = [
    Action.STOP,
    Action.MOVE_PROTECTED_ALIAS,
    Action.APPROVE,
    Action.EMERGENCY_OVERRIDE,
    Action.PROMOTE,
    Action.RELEASE_QUARANTINE,
    Action.MANAGE_MEMBERS,
    Action.MANAGE_CALLERS,
    Action.CHOOSE_LOAD_TESTS,
    Action.DECIDE_FLEET_ACTION,
    Action.MANAGE_ENVIRONMENTS,
    Action.SILENCE_ALERTS,
    Action.MANAGE_PRESETS,
    Action.VIEW_AUDIT,
    Action.MANAGE_TEAM,
    Action.MANAGE_PLATFORM,
]


@pytest.fixture
def team() -> Team:
    return make_team(slug="vision")


@pytest.fixture
def lead(team: Team) -> User:
    return make_membership(user=make_user(username="lead"), team=team, role=Role.LEAD).user


def make_account(lead: User, team: Team, **fields: Any) -> NewToken:
    return service_accounts.create(
        actor=lead, team=team, **{"name": "ci", "scopes": ["upload", "request"], **fields}
    )


def stored() -> str:
    tables = (User, Membership, ApiToken, AuditEvent)
    return json.dumps(
        [list(one._base_manager.order_by("pk").values()) for one in tables], default=str
    )


def test_a_lead_makes_an_account_that_uploads_and_requests(lead: User, team: Team) -> None:
    made = make_account(lead, team, days=30)
    user = tokens.user_of(made.plain)

    assert user is not None
    assert user.username == "vision:ci"
    assert not user.has_usable_password()
    for action in (Action.VIEW, Action.UPLOAD, Action.REQUEST_CHANGE, Action.MOVE_ALIAS):
        policy.require(user, action, team)
    assert list(policy.visible_teams(user)) == [team]
    assert made.plain not in stored()
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_name, event.team_slug, event.object_label) == (
        "service_account.created",
        "lead",
        "vision",
        "vision:ci",
    )
    assert event.after["scopes"] == "read upload request"
    (listed,) = service_accounts.list_service_accounts(actor=lead, team=team)
    assert (listed.name, listed.tokens[0].pk) == ("ci", made.row.pk)
    assert listed.last_used_at is not None


@pytest.mark.parametrize("action", PEOPLE_ONLY)
@pytest.mark.parametrize("role", [Role.MEMBER, Role.LEAD])
def test_no_role_lets_it_decide_or_manage(
    action: Action, role: Role, lead: User, team: Team
) -> None:
    user = make_account(lead, team).row.user
    Membership.objects.filter(user=user).update(role=role)

    with pytest.raises(Forbidden, match="Only a person can") as refused:
        policy.require(user, action, team)

    assert refused.value.code == "person_required"


def test_the_actions_that_it_may_take_are_the_others(lead: User, team: Team) -> None:
    user = make_account(lead, team).row.user

    allowed = {action for action in Action if policy.is_allowed(user, action, team)}

    # A member; fleet actions are requested by leads.
    assert allowed == set(Action) - {*PEOPLE_ONLY, Action.REQUEST_FLEET_ACTION}


def test_the_database_makes_it_no_admin(lead: User, team: Team) -> None:
    user = make_account(lead, team).row.user

    with pytest.raises(IntegrityError, match="service_account_is_no_admin"), transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_platform_admin=True)


@pytest.mark.parametrize("name", ["", "CI", "-ci", "ci:x", "c i", "x" * 33, "cí", "ci\n"])
def test_a_name_that_is_none_is_refused(name: str, lead: User, team: Team) -> None:
    before = stored()

    with pytest.raises(Invalid) as refused:
        make_account(lead, team, name=name)

    assert "name" in refused.value.fields
    assert stored() == before


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"scopes": ["decide"]}, "scopes"), ({"scopes": ["all"]}, "scopes"), ({"days": 366}, "days")],
)
def test_what_it_cannot_have_is_refused(
    fields: dict[str, object], field: str, lead: User, team: Team
) -> None:
    before = stored()

    with pytest.raises(Invalid) as refused:
        make_account(lead, team, **fields)

    assert set(refused.value.fields) == {field}
    assert stored() == before


def test_the_old_token_works_during_the_overlap_and_the_new_one_after(
    lead: User, team: Team
) -> None:
    old = make_account(lead, team, days=30, requests_per_minute=60)

    new = service_accounts.rotate(
        actor=lead, team=team, name="ci", token_id=old.row.pk, overlap_hours=24
    )

    assert tokens.user_of(old.plain) == tokens.user_of(new.plain) == old.row.user
    assert new.row.scopes == "read upload request"
    assert new.row.expires_at - new.row.created_at == timedelta(days=30)
    assert new.row.requests_per_minute == 60
    (listed,) = service_accounts.list_service_accounts(actor=lead, team=team)
    assert ([token.pk for token in listed.tokens], listed.newest.pk) == (
        [new.row.pk, old.row.pk],
        new.row.pk,
    )
    assert AuditEvent.objects.latest("id").after["overlap_hours"] == 24
    with time_machine.travel(clock.now() + timedelta(hours=24, seconds=1), tick=False):
        assert tokens.user_of(old.plain) is None
        assert tokens.explain_refusal(old.plain)[0] == "token_expired"
        assert tokens.user_of(new.plain) is not None


def test_a_token_that_a_deactivated_person_knows_is_named_until_it_is_rotated(
    lead: User, team: Team
) -> None:
    admin = make_user(is_platform_admin=True)
    made = make_account(lead, team)

    people.deactivate(actor=admin, username="lead")
    (left,) = service_accounts.list_service_accounts(actor=admin, team=team)
    service_accounts.rotate(
        actor=admin, team=team, name="ci", token_id=made.row.pk, overlap_hours=0
    )
    (rotated,) = service_accounts.list_service_accounts(actor=admin, team=team)

    assert left.known_to == ["lead"]
    assert rotated.known_to == []
    assert tokens.user_of(made.plain) is None


def test_a_rotation_at_once_ends_the_old_token(lead: User, team: Team) -> None:
    old = make_account(lead, team)

    new = service_accounts.rotate(
        actor=lead, team=team, name="ci", token_id=old.row.pk, overlap_hours=0
    )

    assert tokens.user_of(old.plain) is None
    assert tokens.user_of(new.plain) is not None


def test_of_two_pages_that_rotate_one_wins(lead: User, team: Team) -> None:
    old = make_account(lead, team)
    rotate = partial(service_accounts.rotate, actor=lead, team=team, name="ci", token_id=old.row.pk)
    rotate(overlap_hours=1)
    before = stored()

    with pytest.raises(Conflict, match="has just been rotated"):
        rotate(overlap_hours=1)
    with pytest.raises(Invalid, match="0, 1, 24, 168"):
        rotate(overlap_hours=9999)

    assert stored() == before


def test_a_revoked_account_is_dead_at_once_and_its_name_is_not_used_again(
    lead: User, team: Team
) -> None:
    made = make_account(lead, team)

    service_accounts.revoke(actor=lead, team=team, name="ci")

    assert tokens.user_of(made.plain) is None
    assert AuditEvent.objects.latest("id").action == "service_account.revoked"
    before = stored()
    with pytest.raises(NotFound):
        service_accounts.revoke(actor=lead, team=team, name="ci")
    with pytest.raises(NotFound):
        service_accounts.rotate(
            actor=lead, team=team, name="ci", token_id=made.row.pk, overlap_hours=0
        )
    with pytest.raises(Conflict, match="has or had a service account ci"):
        make_account(lead, team)
    assert stored() == before


@pytest.mark.parametrize(
    "act",
    [
        lambda actor, team, row: make_account(actor, team, name="other"),
        lambda actor, team, row: service_accounts.revoke(actor=actor, team=team, name="ci"),
        lambda actor, team, row: service_accounts.list_service_accounts(actor=actor, team=team),
        lambda actor, team, row: service_accounts.rotate(
            actor=actor, team=team, name="ci", token_id=row.pk, overlap_hours=0
        ),
    ],
)
def test_only_who_manages_the_team_may(
    act: Callable[[User, Team, ApiToken], object], lead: User, team: Team
) -> None:
    row = make_account(lead, team, scopes=["read"]).row
    outsiders = [
        make_membership(team=team, role=Role.MEMBER).user,
        make_membership(team=team, role=Role.VIEWER).user,
        make_membership(role=Role.LEAD).user,
        row.user,
    ]
    by_token = tokens.user_of(tokens.create(actor=lead, name="t", scopes=list(Scope)).plain)
    assert by_token is not None
    before = stored()

    for actor in (*outsiders, by_token):
        with pytest.raises((Forbidden, NotFound)):
            act(actor, team, row)

    assert stored() == before


def test_an_account_of_another_team_is_not_there(lead: User, team: Team) -> None:
    other = make_team()
    row = make_account(make_user(is_platform_admin=True), other).row
    before = stored()

    with pytest.raises(NotFound):
        service_accounts.revoke(actor=lead, team=team, name="ci")
    assert service_accounts.list_service_accounts(actor=lead, team=team) == []
    assert policy.role_in(row.user, team) is None
    assert stored() == before


def test_it_is_no_person_of_any_list_and_gets_no_role(lead: User, team: Team) -> None:
    make_account(lead, team)
    admin = make_user(is_platform_admin=True)
    name = "vision:ci"
    before = stored()
    at = clock.now()

    attempts: list[Callable[[], object]] = [
        lambda: teams.set_member(actor=lead, team=team, username=name, role="lead"),
        lambda: teams.remove_member(actor=lead, team=team, username=name),
        lambda: delegations.name_delegate(
            actor=lead,
            team=team,
            username=name,
            starts_at=at,
            ends_at=at + timedelta(days=1),
            reason="away",
        ),
        lambda: people.deactivate(actor=admin, username=name),
    ]
    for attempt in attempts:
        with pytest.raises(DomainError):
            attempt()

    assert [row.user for row in teams.list_members(actor=lead, team=team)] == [lead]
    assert name not in [row.username for row in people.list_matching(actor=admin)]
    assert not Delegation.objects.exists()
    assert stored() == before
