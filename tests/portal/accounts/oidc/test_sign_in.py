"""Sign-in with a real provider: who a person becomes, and with which roles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from portal.accounts import teams
from portal.accounts.models import Identity, User
from portal.accounts.oidc.providers import Provider
from portal.core.errors import Conflict
from tests.accounts import events_besides_sign_ins, make_membership, make_team, make_user
from tests.portal.accounts.oidc.conftest import Server, SignIn
from tests.portal.accounts.oidc.rows import counts, roles_of, who

pytestmark = pytest.mark.django_db


def test_a_person_joins_the_team_of_the_claim_and_leaves_it_with_the_claim(
    client: Client, server: Server, sign_in: SignIn
) -> None:
    make_team("vision")
    make_team("audio")
    server.set_claims(
        "00u1",
        preferred_username="ana",
        name="Ana Lima",
        email="ana@example.com",
        groups=["vision-leads", "slipway-audio", "slipway-nothing"],
    )

    answer = sign_in("00u1", next_path="/approvals")

    assert (answer.status_code, answer["Location"]) == (302, "/approvals")
    assert who(client) == "ana"
    assert roles_of("ana") == {"vision": "lead", "audio": "member"}
    ana = User.objects.get()
    assert (ana.first_name, ana.last_name, ana.email) == ("Ana", "Lima", "ana@example.com")
    assert not ana.has_usable_password()
    assert not ana.is_platform_admin

    server.set_claims("00u1", preferred_username="renamed", groups=["slipway-audio"])
    sign_in("00u1", browser=Client())

    assert User.objects.get().username == "ana"
    assert roles_of("ana") == {"audio": "member"}
    assert client.get("/admin/teams/vision").status_code == 404  # also in the older session
    rows = events_besides_sign_ins().values_list("action", "actor_name", "team_slug", "reason")
    assert list(rows) == [
        ("person.created", "slipway", "", "first sign-in with Lab"),
        ("team.member_set", "slipway", "audio", "claims of Lab"),
        ("team.member_set", "slipway", "vision", "claims of Lab"),
        ("team.member_removed", "slipway", "vision", "claims of Lab"),
    ]


def test_signing_in_again_with_the_same_claims_writes_no_audit(
    server: Server, sign_in: SignIn
) -> None:
    make_team("vision")
    server.set_claims("00u1", preferred_username="ana", groups=["vision-leads"])
    sign_in("00u1")
    before = counts()

    sign_in("00u1", browser=Client())

    assert counts() == before


def test_a_role_that_a_person_gave_stays_and_one_that_a_claim_gave_cannot_be_changed_here(
    server: Server, sign_in: SignIn
) -> None:
    audio, vision = make_team("audio"), make_team("vision")
    server.set_claims("00u1", preferred_username="ana", groups=["vision-leads"])
    sign_in("00u1")
    make_membership(user=User.objects.get(username="ana"), team=audio, role="lead")
    server.set_claims("00u1", preferred_username="ana")
    admin = make_user(is_platform_admin=True)

    with pytest.raises(Conflict, match="provider lab gave ana the role lead"):
        teams.set_member(actor=admin, team=vision, username="ana", role="viewer")
    sign_in("00u1", browser=Client())

    assert roles_of("ana") == {"audio": "lead"}


def test_claims_make_a_platform_admin_and_take_only_what_they_gave(
    client: Client, server: Server, sign_in: SignIn, provider: Provider
) -> None:
    server.set_claims("00u1", preferred_username="ana", groups=["slipway-admins"])
    sign_in("00u1")
    assert User.objects.get().is_platform_admin
    server.set_claims("00u1", preferred_username="ana", groups=[])

    sign_in("00u1", browser=Client())

    assert not User.objects.get().is_platform_admin
    assert client.get("/admin/clusters").status_code == 403
    User.objects.update(is_platform_admin=True)
    sign_in("00u1", browser=Client())
    assert User.objects.get().is_platform_admin


@pytest.mark.parametrize(
    "local", [{"username": "Ana"}, {"username": "x", "email": "ANA@example.com"}]
)
def test_a_local_account_of_the_same_name_or_address_is_not_taken_over(
    client: Client, server: Server, sign_in: SignIn, local: dict[str, str]
) -> None:
    make_user(**local, is_platform_admin=True)
    server.set_claims(
        "00u1", preferred_username="ana", email="ana@example.com", email_verified=True
    )
    before = counts()

    answer = sign_in("00u1")

    assert answer.status_code == 403
    assert "Your identifier at Lab is 00u1" in answer.content.decode()
    assert (who(client), counts()) == (None, before)


def test_the_same_subject_of_another_issuer_is_another_person(
    client: Client, server: Server, sign_in: SignIn
) -> None:
    person = make_user("ana")
    Identity.objects.create(
        user=person,
        provider="lab",
        issuer="http://127.0.0.1:1",
        subject="00u1",
        created_at=person.date_joined,
    )
    server.set_claims("00u1", preferred_username="eve")

    sign_in("00u1")

    assert who(client) == "eve"


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ({}, "no usable name"),
        ({"preferred_username": "ana lima"}, "no usable name"),
        ({"preferred_username": ["ana"]}, "no usable name"),
        ({"preferred_username": "a" * 151}, "no usable name"),
        ({"preferred_username": "Slipway"}, "is reserved"),
        ({"preferred_username": "ana", "_claim_names": {"groups": "x"}}, "did not send all values"),
    ],
)
def test_claims_that_cannot_be_used_sign_nobody_in(
    client: Client, server: Server, sign_in: SignIn, claims: dict[str, Any], problem: str
) -> None:
    server.set_claims("00u1", **claims)
    before = counts()

    answer = sign_in("00u1")

    assert answer.status_code == 403
    assert problem in answer.content.decode()
    assert (who(client), counts()) == (None, before)


def test_a_required_claim_keeps_others_out(
    client: Client, server: Server, sign_in: SignIn, provider: Provider, settings: Any
) -> None:
    settings.SLIPWAY_OIDC = (replace(provider, required=(("hd", "example.com"),)),)
    server.set_claims("00u1", preferred_username="eve", hd="elsewhere.com")
    server.set_claims("00u2", preferred_username="ana", hd="example.com")

    assert sign_in("00u1").status_code == 403
    assert User.objects.count() == 0
    assert sign_in("00u2").status_code == 302


def test_a_deactivated_person_is_refused_and_keeps_no_new_role(
    client: Client, server: Server, sign_in: SignIn
) -> None:
    make_team("vision")
    server.set_claims("00u1", preferred_username="ana")
    sign_in("00u1", browser=Client())
    User.objects.update(is_active=False)
    server.set_claims("00u1", preferred_username="ana", groups=["vision-leads"])
    before = counts()

    answer = sign_in("00u1")

    assert (answer.status_code, who(client), counts()) == (403, None, before)
    assert "deactivated" in answer.content.decode()


def test_userinfo_adds_claims_and_must_be_of_the_same_person(
    server: Server, sign_in: SignIn, provider: Provider, settings: Any
) -> None:
    settings.SLIPWAY_OIDC = (replace(provider, reads_userinfo=True),)
    server.set_claims("00u1", preferred_username="ana")

    assert sign_in("00u1").status_code == 302
    assert User.objects.get().username == "ana"
