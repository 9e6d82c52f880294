"""Owner and leads are told who let somebody into an account."""

from __future__ import annotations

import quopri
from typing import Any

import pytest

from portal.accounts import four_eyes
from portal.accounts.models import AccountHolder, Role, Team, User
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import tokens
from portal.notifications import account_holders
from portal.notifications.models import Notice
from tests.accounts import make_membership, make_user
from tests.portal.notifications.listeners import Mailbox

pytestmark = pytest.mark.django_db
Means = AccountHolder.Means
OKTA = Provider("okta", "Okta", "https://okta.example", "slipway", "secret")


def person(name: str, team: Team, role: str) -> User:
    user = make_user(username=name, email=f"{name}@example.org")
    make_membership(user=user, team=team, role=role)
    return user


@pytest.mark.parametrize(
    ("means", "told"),
    [
        (Means.PASSWORD_LINK, {"ana", "other"}),
        (Means.SECOND_FACTOR, {"ana", "other"}),
        (Means.PROVIDER, {"ana", "other"}),
        # The owner has just made the account.
        (Means.INVITATION, {"other"}),
    ],
)
def test_each_is_mailed_once(
    means: AccountHolder.Means,
    told: set[str],
    lead: User,
    team: Team,
    mailbox: Mailbox,
    settings: Any,
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    ana, _ = person("ana", team, Role.MEMBER), person("other", team, Role.LEAD)
    four_eyes.record(account=ana, holder_id=lead.pk, means=means)

    account_holders.sweep()
    account_holders.sweep()

    assert sorted(mailbox.recipients) == [f"rcpt TO:<{name}@example.org>" for name in sorted(told)]
    text = quopri.decodestring(mailbox.mails[0]).decode()
    assert f"{lead.username} " in text
    assert "both count as one person" in text
    assert Notice.objects.get().event == "account.opened"
    assert AccountHolder.objects.get().next_check_at is None


def test_without_e_mail_channels_are_told(lead: User, team: Team, settings: Any) -> None:
    settings.SLIPWAY_SMTP_URL = ""
    ana = person("ana", team, Role.MEMBER)
    four_eyes.record(account=ana, holder_id=lead.pk, means=Means.PASSWORD_LINK)

    account_holders.sweep()

    assert Notice.objects.get().data == {"people": [ana.pk]}


def test_a_scim_token_is_announced_once_and_its_accounts_are_not(team: Team, settings: Any) -> None:
    settings.SLIPWAY_OIDC = (OKTA,)
    admin = make_user(username="root", is_platform_admin=True)
    tokens.create(actor=admin, provider_name="okta")
    four_eyes.record(account=make_user(), holder_id=admin.pk, means=Means.SCIM, is_notified=False)

    for _ in range(2):
        account_holders.announce_scim_tokens()
        account_holders.sweep()

    assert Notice.objects.get().subject == "root created a SCIM token of okta"
