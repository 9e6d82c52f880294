"""An invitation: shown once, used once, by one person, and dead when it should be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from portal.accounts import people
from portal.accounts.local import invitations, links
from portal.accounts.local.links import LinkDead
from portal.accounts.local.models import Invitation
from portal.accounts.models import Membership, Role, Team, User
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.accounts import events_besides_sign_ins, make_membership, make_team, make_user
from tests.page import page

pytestmark = pytest.mark.django_db
PASSWORD = "three grey herons wade"


@pytest.fixture
def team() -> Team:
    return make_team("vision", name="Vision")


@pytest.fixture
def lead(team: Team) -> User:
    return make_membership(user=make_user("lee"), team=team, role=Role.LEAD).user


def invite(lead: User, team: Team, **more: Any) -> str:
    fields = {"name": "Ana Berg", "email": "Ana@Example.org", "role": "member", **more}
    return invitations.invite(actor=lead, team=team, **fields).path


def fill(**more: str) -> dict[str, str]:
    return {"username": "ana", "password": PASSWORD, "repeated": PASSWORD, **more}


def events() -> list[tuple[str, str, str]]:
    rows = events_besides_sign_ins().values_list("action", "actor_name", "reason")
    return list(rows)


def test_the_invited_person_chooses_a_password_and_is_signed_in(
    lead: User, team: Team, client: Client
) -> None:
    opened = client.get(invite(lead, team), follow=True)
    shown = page(opened)

    answer = client.post("/invitation", fill())

    assert opened.redirect_chain == [("/invitation", 302)]
    assert "lee invited you, Ana Berg, as member" in shown.text
    assert (answer.status_code, answer["Location"]) == (302, "/")
    ana = User.objects.get(username="ana")
    assert (ana.first_name, ana.last_name, ana.email) == ("Ana", "Berg", "ana@example.org")
    assert ana.check_password(PASSWORD)
    assert Membership.objects.get(user=ana).role == Role.MEMBER
    assert client.session["_auth_user_id"] == str(ana.pk)
    assert events() == [
        ("invitation.made", "lee", ""),
        ("person.created", "slipway", "invited by lee"),
        ("team.member_set", "slipway", "invited by lee"),
    ]


def test_the_row_does_not_hold_the_token(lead: User, team: Team) -> None:
    token = invite(lead, team).rpartition("/")[2]

    row = Invitation.objects.values().get()

    assert row["digest"] == links.digest_of(token)
    assert token not in {str(value) for value in row.values()}
    assert row["expires_at"] - row["created_at"] == timedelta(days=7)


def test_a_used_link_makes_no_second_account(lead: User, team: Team, client: Client) -> None:
    path, other = invite(lead, team), Client()
    for browser in (client, other):
        browser.get(path)
    client.post("/invitation", fill())

    second = other.post("/invitation", fill(username="eve"))

    assert second.status_code == 410
    assert "has been used" in page(second).text
    assert not User.objects.filter(username="eve").exists()
    assert "_auth_user_id" not in other.session


def test_two_at_once_make_one_account(lead: User, team: Team, monkeypatch: Any) -> None:
    """The other one uses the link after this one has read it."""
    invite(lead, team)
    digest = Invitation.objects.get().digest
    found = invitations.find(digest)
    monkeypatch.setattr(invitations, "find", lambda digest: found)
    invitations.accept(digest=digest, username="ana", password=PASSWORD)

    with pytest.raises(LinkDead):
        invitations.accept(digest=digest, username="eve", password=PASSWORD)

    assert list(User.objects.order_by("id").values_list("username", flat=True)) == ["lee", "ana"]
    assert AuditEvent.objects.count() == 3


def _expire(lead: User, team: Team) -> None:
    Invitation.objects.update(expires_at=clock.now())


def _revoke(lead: User, team: Team) -> None:
    invitations.revoke(actor=lead, invitation_id=Invitation.objects.get().pk)


def _demote(lead: User, team: Team) -> None:
    Membership.objects.filter(user=lead).update(role=Role.MEMBER)


def _deactivate(lead: User, team: Team) -> None:
    people.deactivate(actor=make_user("root", is_platform_admin=True), username="lee")


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (_expire, "has expired"),
        (_revoke, "was revoked"),
        (_demote, "can no longer invite people"),
        (_deactivate, "was revoked"),
    ],
)
def test_a_dead_link_says_why_and_changes_nothing(
    lead: User, team: Team, client: Client, end: Any, says: str
) -> None:
    client.get(invite(lead, team))
    end(lead, team)
    before = (User.objects.count(), AuditEvent.objects.count())

    shown, sent = client.get("/invitation"), client.post("/invitation", fill())

    assert (shown.status_code, sent.status_code) == (410, 410)
    assert says in page(shown).text
    assert "Ask the person who sent it for a new one" in page(shown).text
    assert (User.objects.count(), AuditEvent.objects.count()) == before


def test_a_link_that_was_made_up_and_a_page_without_a_link(client: Client) -> None:
    client.get("/invitation/made-up")

    assert client.get("/invitation").status_code == 410
    assert Client().get("/invitation").status_code == 410


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"username": "LEE"}, "The username LEE, or one that looks like it, is taken"),
        ({"username": "Slipway"}, "taken"),
        ({"username": "a b"}, "Use letters, digits"),
        ({"password": "short", "repeated": "short"}, "at least 12 characters"),
        ({"password": "ana@example.org", "repeated": "ana@example.org"}, "too similar"),
        ({"repeated": "something else"}, "The passwords differ"),
    ],
)
def test_what_cannot_be_an_account_is_refused_and_the_link_lives_on(
    lead: User, team: Team, client: Client, change: dict[str, str], says: str
) -> None:
    client.get(invite(lead, team))

    answer = client.post("/invitation", fill(**change))

    assert answer.status_code in (409, 422)
    assert says in page(answer).text
    assert PASSWORD not in answer.content.decode()
    assert (User.objects.count(), Invitation.objects.get().used_at) == (1, None)


def test_who_is_signed_in_uses_nothing_up(lead: User, team: Team, client: Client) -> None:
    client.force_login(lead)
    client.get(invite(lead, team))

    answer = client.post("/invitation", fill())

    assert "You are signed in as lee" in page(answer).text
    assert (User.objects.count(), Invitation.objects.get().used_at) == (1, None)


def test_leads_invite_to_their_own_team_only(lead: User, team: Team) -> None:
    other = make_team("audio")
    member = make_membership(team=team).user
    for actor, where, error in ((lead, other, NotFound), (member, team, Forbidden)):
        with pytest.raises(error):
            invite(actor, where)
    path = invite(lead, team)
    row = Invitation.objects.get()
    for stranger, error in ((make_user("eve"), NotFound), (member, Forbidden)):
        with pytest.raises(error):
            invitations.revoke(actor=stranger, invitation_id=row.pk)
    assert invitations.find(links.digest_of(path.rpartition("/")[2])) == row
    assert AuditEvent.objects.count() == 1


def test_nobody_is_invited_twice_or_who_has_an_account(lead: User, team: Team) -> None:
    make_user("ben", email="ben@example.org")
    invite(lead, team)
    with pytest.raises(Conflict, match="has an open invitation to vision"):
        invite(lead, team, email="ANA@example.org")
    with pytest.raises(Conflict, match="has an account already"):
        invite(lead, team, email="BEN@example.org")
    for wrong in ({"name": " "}, {"name": "a\nb\0"}, {"email": "ana"}, {"role": "admin"}):
        with pytest.raises(Invalid):
            invite(lead, team, **wrong)
    assert (Invitation.objects.count(), AuditEvent.objects.count()) == (1, 1)

    with time_machine.travel(clock.now() + timedelta(days=8)):
        invite(lead, team)
    assert Invitation.objects.filter(revoked_at=None).count() == 1


def test_the_team_page_shows_the_link_once_and_revokes(
    lead: User, team: Team, client: Client
) -> None:
    client.force_login(lead)
    data = {"name": "Ana", "email": "ana@example.org", "role": "viewer"}

    made = client.post("/admin/teams/vision/invitations", data)
    again = client.post("/admin/teams/vision/invitations", data)
    later = page(client.get("/admin/teams/vision"))

    link = page(made).part("new-link").text
    assert link.startswith("http://testserver/invitation/")
    assert "Nothing was sent. Copy the link now and send it to them" in page(made).text
    assert "This portal sends no e-mail." in later.text
    assert made["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    assert again.status_code == 422
    assert page(again).field("email").value == "ana@example.org"
    assert "ana@example.org" in later.text
    assert "/invitation/" not in later.text
    pk = Invitation.objects.get().pk
    assert client.post(f"/admin/invitations/{pk}/revoke").status_code == 302
    assert client.post(f"/admin/invitations/{pk}/revoke").status_code == 409
    assert page(Client().get(link, follow=True)).text.count("was revoked") == 1


def test_admins_invite_to_any_team_from_the_people_page(team: Team, client: Client) -> None:
    client.force_login(make_user("root", is_platform_admin=True))
    data = {"name": "Ana", "email": "ana@example.org", "role": "lead", "team": "vision"}

    made = client.post("/admin/invitations", data)
    refused = client.post("/admin/invitations", {**data, "team": "none"})

    assert (made.status_code, refused.status_code) == (200, 422)
    assert Invitation.objects.get().role == Role.LEAD
