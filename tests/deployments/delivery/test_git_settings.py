"""Choosing delivery through Git for a team, and trying the repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from deployments.delivery.services import git_settings
from deployments.delivery.services.git_settings import GitDraft
from deployments.models import GitDelivery
from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests.accounts import make_membership, make_team, make_user
from tests.deployments.git_server import TOKEN, USERNAME, GitServer, server

__all__ = ["server"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(db: None) -> Team:
    made: Team = make_team(slug="vision")
    return made


@pytest.fixture
def admin(db: None) -> User:
    made: User = make_user(is_platform_admin=True)
    return made


@pytest.fixture
def draft(server: GitServer) -> GitDraft:
    return GitDraft(
        is_enabled=True, repository_url=server.url, username=USERNAME, credential="fleet-repo"
    )


@pytest.fixture
def chosen(admin: User, team: Team, draft: GitDraft) -> None:
    git_settings.save(actor=admin, team=team, draft=draft)


def test_only_platform_admins_set_the_delivery(team: Team, draft: GitDraft) -> None:
    lead = make_membership(team=team, role="lead").user

    with pytest.raises(Forbidden):
        git_settings.save(actor=lead, team=team, draft=draft)

    assert not GitDelivery.objects.exists()
    assert not AuditEvent.objects.filter(action="team.delivery_set").exists()


def test_setting_the_delivery_is_audited_once_without_the_token(
    admin: User, team: Team, chosen: None, draft: GitDraft
) -> None:
    git_settings.save(actor=admin, team=team, draft=draft)

    event = AuditEvent.objects.get(action="team.delivery_set")
    assert event.after["credential"] == "fleet-repo"
    assert TOKEN not in str(event.after)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"repository_url": "https://ana:pw@git.example/fleet.git"}, "repository_url"),
        ({"repository_url": "http://git.example/fleet.git"}, "repository_url"),
        ({"repository_url": "file:///etc"}, "repository_url"),
        ({"repository_url": ""}, "repository_url"),
        ({"branch": "../x"}, "branch"),
        ({"path": "/etc"}, "path"),
        ({"path": "a/../b"}, "path"),
        ({"credential": "../secret"}, "credential"),
    ],
)
def test_invalid_settings_are_refused(
    admin: User, team: Team, draft: GitDraft, changed: Mapping[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        git_settings.save(actor=admin, team=team, draft=replace(draft, **changed))

    assert set(caught.value.fields) == {field}
    assert not GitDelivery.objects.exists()


def test_the_connection_test_names_the_commit_or_the_problem(
    admin: User, team: Team, chosen: None, server: GitServer, draft: GitDraft
) -> None:
    server.push_by_hand("README.md", "ours")
    head = server.git("rev-parse", "main")

    good = git_settings.test_connection(actor=admin, team=team)
    GitDelivery.objects.update(credential="gone")
    bad = git_settings.test_connection(actor=admin, team=team)

    assert (good.ok, good.message) == (True, f"main of {server.url} is at {head[:8]}.")
    assert (bad.ok, bad.message) == (False, "The Git credential gone cannot be read.")
