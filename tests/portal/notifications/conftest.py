from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from portal.accounts.models import Role, Team, User
from tests.accounts import make_membership, make_team, make_user
from tests.portal.notifications import listeners
from tests.portal.notifications.listeners import Hook, Mailbox


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    settings.SLIPWAY_NOTIFY_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    with listeners.web_server() as server:
        yield server


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with listeners.mail_server() as box:
        settings.SLIPWAY_SMTP_URL = box.url
        settings.SLIPWAY_SMTP_FROM = "slipway@example.org"
        yield box


@pytest.fixture
def team(db: None) -> Team:
    return make_team(slug="vision")


@pytest.fixture
def lead(team: Team) -> User:
    user = make_user(username="lee")
    make_membership(user=user, team=team, role=Role.LEAD)
    return user


@pytest.fixture
def member(team: Team) -> User:
    user = make_user(username="ana")
    make_membership(user=user, team=team, role=Role.MEMBER)
    return user
