"""Who counts as one person: what makes it so, and along which chains."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.accounts import four_eyes, people, service_accounts, tokens
from portal.accounts.local import invitations, links, passwords, second_factor
from portal.accounts.local.models import Passkey
from portal.accounts.models import HELD_FOR, AccountHolder, Role, Team, User
from portal.accounts.oidc import rules
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import groups, users
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
Means = AccountHolder.Means
PASSWORD = "three grey herons"
LAB = Provider(
    name="lab",
    label="Lab",
    issuer="https://lab.example",
    client_id="slipway",
    client_secret="not a secret",
    rules=rules.parse("groups=leads -> vision lead\ngroups=admins -> platform-admin"),
)


@pytest.fixture
def team() -> Team:
    cache.clear()
    return make_team(slug="vision")


@pytest.fixture
def lead(team: Team) -> User:
    user = make_user(username="lead")
    make_membership(user=user, team=team, role=Role.LEAD)
    return user


@pytest.fixture
def admin() -> User:
    return make_user(username="root", is_platform_admin=True)


@pytest.fixture
def person(team: Team) -> User:
    user = make_user(username="ana", email="ana@example.org")
    user.set_password(PASSWORD)
    user.save()
    make_membership(user=user, team=team)
    return user


def accept(invited: invitations.NewInvitation, username: str) -> User:
    digest = links.digest_of(links.derive_token(invited.row.nonce))
    return invitations.accept(digest=digest, username=username, password=PASSWORD)


def invite(actor: User, team: Team, name: str, role: str = Role.LEAD) -> User:
    made = invitations.invite(
        actor=actor, team=team, name=name, email=f"{name}@example.org", role=role
    )
    return accept(made, name)


def provision(maker: User, **fields: Any) -> User:
    provider = replace(LAB, scim_token_by=maker.pk)
    return users.create(provider, {"user_name": "bo", "external_id": "1", **fields}).user


def make_password_link(admin: User, person: User) -> None:
    passwords.make_link(actor=admin, username=person.username)


def use_password_link(admin: User, person: User) -> None:
    made = passwords.make_link(actor=admin, username=person.username)
    AccountHolder.objects.all().delete()
    digest = links.digest_of(links.derive_token(made.row.nonce))
    passwords.choose(digest=digest, password="four grey herons")


def remove_second_factor(admin: User, person: User) -> None:
    Passkey.objects.create(
        user=person, name="key", credential_id="x", credential=b"", created_at=clock.now()
    )
    second_factor.remove_factors(actor=admin, username=person.username)


def connect_provider(admin: User, person: User) -> None:
    people.connect(actor=admin, username=person.username, provider_name="lab", subject="7")


BY_ADMIN: dict[str, Callable[[User, User], None]] = {
    "password link made": make_password_link,
    "password link used": use_password_link,
    "second factor": remove_second_factor,
    "provider": connect_provider,
}


@pytest.mark.parametrize("case", BY_ADMIN)
def test_an_admin_who_lets_somebody_into_an_account_counts_as_it(
    case: str, admin: User, person: User, settings: Any
) -> None:
    settings.SLIPWAY_OIDC = (LAB,)

    BY_ADMIN[case](admin, person)

    assert four_eyes.one_person_with(admin.pk) == {admin.pk, person.pk}
    assert four_eyes.one_person_with(person.pk) == {admin.pk, person.pk}
    AccountHolder.objects.update(at=clock.now() - HELD_FOR)
    assert four_eyes.one_person_with(person.pk) == {person.pk}


def test_a_chain_of_invitations_is_one_person(lead: User, team: Team) -> None:
    second = invite(lead, team, "second")
    third = invite(second, team, "third")
    sibling = invite(lead, team, "sibling")

    everyone = {lead.pk, second.pk, third.pk, sibling.pk}
    assert four_eyes.map_counterparts(everyone) == dict.fromkeys(everyone, everyone)


def test_what_manage_py_does_is_nobody_s(person: User, settings: Any) -> None:
    from portal.accounts.policy import SYSTEM

    settings.SLIPWAY_OIDC = (LAB,)
    people.connect(actor=SYSTEM, username=person.username, provider_name="lab", subject="7")

    assert four_eyes.one_person_with(person.pk) == {person.pk}


def test_who_holds_a_service_account_s_token_is_part_of_the_chain(lead: User, team: Team) -> None:
    second = invite(lead, team, "second")
    made = service_accounts.create(actor=second, team=team, name="ci", scopes=["request"])
    account = tokens.user_of(made.plain)
    assert account is not None

    assert four_eyes.one_person_with(account.pk) == {account.pk, second.pk, lead.pk}
    assert account.pk in four_eyes.one_person_with(lead.pk)


def test_who_made_a_scim_token_counts_as_each_account_but_these_not_as_one(
    admin: User, team: Team
) -> None:
    bo = provision(admin)
    cy = provision(admin, user_name="cy", external_id="2")

    assert four_eyes.one_person_with(bo.pk) == {admin.pk, bo.pk}
    assert four_eyes.one_person_with(admin.pk) == {admin.pk, bo.pk, cy.pk}


@pytest.mark.parametrize("change", ["role", "platform admin", "email", "reactivated"])
def test_a_change_by_scim_counts_anew(change: str, admin: User, team: Team) -> None:
    provider = replace(LAB, scim_token_by=admin.pk)
    bo = provision(admin)
    key = str(bo.provisioned.get().pk)
    if change == "reactivated":
        users.change(provider, key, {"is_active": False})
    AccountHolder.objects.all().delete()

    match change:
        case "role":
            groups.create(provider, {"display_name": "leads"}, [key])
        case "platform admin":
            groups.create(provider, {"display_name": "admins"}, [key])
        case "email":
            users.change(provider, key, {"email": "root@example.org"})
        case "reactivated":
            users.change(provider, key, {"is_active": True})

    assert four_eyes.one_person_with(bo.pk) == {admin.pk, bo.pk}


def test_an_account_without_a_link_costs_one_query(
    lead: User, person: User, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        four_eyes.map_counterparts([lead.pk, person.pk])


def reachable(start: int, edges: Iterable[tuple[int, int]]) -> set[int]:
    """By definition: along any number of edges."""
    reached = {start}
    for _ in range(8):
        reached |= {end for begin, end in edges if begin in reached}
    return reached


@given(
    holds=st.sets(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()).filter(
            lambda one: one[0] != one[1]
        ),
        max_size=10,
    )
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_two_count_as_one_when_somebody_could_be_acting_as_both(
    holds: set[tuple[int, int, bool]],
) -> None:
    """Somebody who holds one by anything and the other by hand, or both by hand, in any number of steps."""
    accounts = [make_user() for _ in range(6)]
    AccountHolder.objects.bulk_create(
        AccountHolder(
            account=accounts[account],
            holder=accounts[holder],
            means=Means.SCIM if is_scim else Means.INVITATION,
            at=clock.now() - timedelta(days=1),
        )
        for account, holder, is_scim in holds
    )
    upwards = [(account, holder) for account, holder, _ in holds]
    by_hand = [(account, holder) for account, holder, is_scim in holds if not is_scim]

    sets = four_eyes.map_counterparts(account.pk for account in accounts)

    for account in accounts:
        assert four_eyes.one_person_with(account.pk) == sets[account.pk]
    for one, other in itertools.product(range(6), repeat=2):
        is_same = bool(
            reachable(one, upwards) & reachable(other, by_hand)
            or reachable(one, by_hand) & reachable(other, upwards)
        )
        assert (accounts[other].pk in sets[accounts[one].pk]) is is_same
