"""Links of accounts by e-mail, to a real server."""

from __future__ import annotations

import quopri
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from portal.accounts.local import invitations, links
from portal.accounts.local.models import Invitation
from portal.accounts.models import Team, User
from portal.core import clock
from portal.notifications import account_mail
from tests.portal.notifications.listeners import Mailbox

pytestmark = pytest.mark.django_db


def invite(lead: User, team: Team) -> invitations.NewInvitation:
    return invitations.invite(
        actor=lead, team=team, name="Ana", email="ana@example.org", role="member"
    )


def test_an_invitation_is_sent_once_with_the_same_link(
    lead: User, team: Team, mailbox: Mailbox, settings: Any
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    made = invite(lead, team)
    assert made.path == ""

    account_mail.sweep()
    account_mail.sweep()

    (mail,) = mailbox.mails
    text = quopri.decodestring(mail).decode()
    token = links.derive_token(made.row.nonce)
    assert f"https://slipway.example.org/invitation/{token}\n" in text
    assert mailbox.recipients == ["rcpt TO:<ana@example.org>"]
    row = Invitation.objects.get()
    assert (row.mail_outcome, row.next_check_at) == ("sent", None)


def test_a_revoked_one_is_not_sent_and_without_an_address_none_is_due(
    lead: User, team: Team, mailbox: Mailbox, settings: Any
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    made = invite(lead, team)
    assert made.row.next_check_at is not None
    invitations.revoke(actor=lead, invitation_id=made.row.pk)
    settings.SLIPWAY_PUBLIC_URL = ""
    assert invite(lead, team).row.next_check_at is None

    account_mail.sweep()

    assert mailbox.mails == []


def test_a_server_that_is_down_is_tried_again(
    lead: User, team: Team, settings: Any, client: Client
) -> None:
    settings.SLIPWAY_SMTP_URL = "smtp+plain://127.0.0.1:1"
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    invite(lead, team)

    account_mail.sweep()

    row = Invitation.objects.get()
    assert row.mail_outcome.startswith("retrying")
    assert row.next_check_at is not None
    assert row.next_check_at > clock.now()
    with time_machine.travel(clock.now() + timedelta(days=8)):
        account_mail.sweep()
    assert Invitation.objects.get().next_check_at is None


def test_a_password_link_is_sent_to_its_person(
    lead: User, mailbox: Mailbox, settings: Any, client: Client
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    User.objects.filter(pk=lead.pk).update(email="lee@example.org")
    client.post("/sign-in/forgotten", {"email": "LEE@example.org"})

    account_mail.sweep()

    (mail,) = mailbox.mails
    found = re.search(
        r"https://slipway.example.org(/password-link/\S+)\n", quopri.decodestring(mail).decode()
    )
    assert found is not None
    assert client.get(found[1])["Location"] == "/password-link"
    assert client.get("/password-link").status_code == 200
    assert mailbox.recipients == ["rcpt TO:<lee@example.org>"]
