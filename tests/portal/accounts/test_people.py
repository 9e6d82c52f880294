"""Deactivating a person ends all that they could act with, at once."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from portal.accounts import delegations, people, tokens
from portal.accounts.local.models import BrowserSession
from portal.accounts.models import Delegation, Identity, Role, User
from portal.accounts.oidc.providers import Provider
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
LAB = Provider("lab", "Lab", "https://lab.example", "slipway", "not a secret")


@pytest.fixture
def admin() -> User:
    return make_user("admin", is_platform_admin=True)


@pytest.fixture
def ana() -> User:
    return make_user("ana")


def test_sessions_tokens_and_delegations_end_and_do_not_come_back(
    client: Client, admin: User, ana: User
) -> None:
    team, other = make_team("vision"), Client()
    lead = make_user("lead")
    make_membership(user=lead, team=team, role=Role.LEAD)
    make_membership(user=ana, team=team)
    at = clock.now()
    delegations.name_delegate(
        actor=lead,
        team=team,
        username="ana",
        starts_at=at,
        ends_at=at + timedelta(days=1),
        reason="away",
    )
    plain = tokens.create(actor=ana, name="notebook").plain
    client.force_login(ana)
    other.force_login(lead)
    header = {"Authorization": f"Bearer {plain}"}
    assert client.get("/approvals").status_code == 200
    assert Client().get("/api/v1/me", headers=header).status_code == 200

    people.deactivate(actor=admin, username="ana", reason="left")

    assert client.get("/approvals").status_code == 302
    assert Client().get("/api/v1/me", headers=header).status_code == 401
    assert Delegation.objects.get().ended_at is not None
    assert other.get("/approvals").status_code == 200
    row = AuditEvent.objects.get(action="person.deactivated")
    assert (row.actor_name, row.object_label, row.reason) == ("admin", "ana", "left")
    assert row.after == {"tokens": 1, "delegations": 1, "sessions": 1, "invitations": 0}

    people.reactivate(actor=admin, username="ana")

    assert client.get("/approvals").status_code == 302
    assert tokens.user_of(plain) is None
    assert not delegations.list_open(actor=lead, team=team).exists()
    assert people.get(actor=admin, username="ana").memberships.get().role == Role.MEMBER


def test_only_platform_admins_and_never_oneself(admin: User, ana: User) -> None:
    Client().force_login(ana)

    with pytest.raises(Forbidden):
        people.deactivate(actor=ana, username="admin")
    with pytest.raises(Invalid):
        people.deactivate(actor=admin, username="admin")
    with pytest.raises(NotFound):
        people.deactivate(actor=admin, username="nobody")
    with pytest.raises(Forbidden):
        people.connect(actor=ana, username="admin", provider_name="lab", subject="x")

    assert set(User.objects.values_list("is_active", flat=True)) == {True}
    assert (AuditEvent.objects.count(), BrowserSession.objects.count()) == (0, 1)


def test_twice_is_a_conflict_that_writes_nothing(admin: User, ana: User) -> None:
    people.deactivate(actor=admin, username="ana")

    with pytest.raises(Conflict):
        people.deactivate(actor=admin, username="ana")
    people.reactivate(actor=admin, username="ana")
    with pytest.raises(Conflict):
        people.reactivate(actor=admin, username="ana")

    assert AuditEvent.objects.count() == 2


def test_an_admin_connects_an_account_with_a_subject_of_nobody_else(
    admin: User, ana: User, settings: Any
) -> None:
    settings.SLIPWAY_OIDC = (LAB,)
    make_user("ben")

    people.connect(actor=admin, username="ana", provider_name="lab", subject="00u1")

    identity = Identity.objects.get()
    assert (identity.user, identity.issuer, identity.subject) == (ana, LAB.issuer, "00u1")
    for username, subject in (("ben", "00u1"), ("ana", "00u2")):
        with pytest.raises(Conflict):
            people.connect(actor=admin, username=username, provider_name="lab", subject=subject)
    for subject in ("", " 00u3", "a\0b", "x" * 256):
        with pytest.raises(Invalid):
            people.connect(actor=admin, username="ben", provider_name="lab", subject=subject)
    with pytest.raises(NotFound):
        people.connect(actor=admin, username="ben", provider_name="other", subject="00u3")
    assert (Identity.objects.count(), AuditEvent.objects.count()) == (1, 1)


def test_the_commands_of_the_documents(ana: User, settings: Any) -> None:
    settings.SLIPWAY_OIDC = (LAB,)
    out = StringIO()

    call_command("connect_person", "ana", "lab", "00u1", stdout=out)
    call_command("deactivate_person", "ana", "--reason", "left", stdout=out)
    call_command("deactivate_person", "ana", "--undo", stdout=out)

    assert out.getvalue().splitlines() == [
        "ana can sign in with lab now.",
        "ana is deactivated.",
        "ana is active again.",
    ]
    assert list(AuditEvent.objects.order_by("id").values_list("action", "actor_name")) == [
        ("person.connected", "slipway"),
        ("person.deactivated", "slipway"),
        ("person.reactivated", "slipway"),
    ]
    with pytest.raises(CommandError, match="User nobody does not exist"):
        call_command("deactivate_person", "nobody")
