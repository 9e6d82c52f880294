"""Set a team's delivery through Git and test the connection. For platform admins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db import transaction

from deployments.delivery.gateways import git
from deployments.delivery.gateways.git import GitError
from deployments.delivery.services import git_backend, git_credentials
from deployments.models import Deployment, GitDelivery, Pipeline
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Team
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

DELIVERY_SET = register("team.delivery_set", "changed the delivery of")
_BRANCH = re.compile(r"[A-Za-z0-9][\w./-]{0,98}[\w-]|[A-Za-z0-9]")
_PATH = re.compile(r"([\w-][\w.-]*(/[\w-][\w.-]*)*)?")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FIELDS = ("is_enabled", "repository_url", "branch", "path", "username", "credential")


@dataclass(frozen=True, slots=True)
class GitDraft:
    """The settings of a team's delivery through Git. `credential` is the name of a file in
    SLIPWAY_GIT_CREDENTIALS_DIR.
    """

    is_enabled: bool
    repository_url: str = ""
    branch: str = "main"
    path: str = ""
    username: str = ""
    credential: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    ok: bool
    message: str


def save(*, actor: Actor, team: Team, draft: GitDraft) -> None:
    """Save the settings. The next reconcile pass commits what runs already, or applies it directly again."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    if draft.is_enabled or draft.repository_url:
        _validate(draft)
    after = {name: getattr(draft, name) for name in _FIELDS}
    with transaction.atomic():
        row = GitDelivery.objects.filter(team=team).first()
        before = {name: getattr(row, name) for name in _FIELDS} if row else {}
        if before == after or (row is None and not draft.is_enabled):
            return
        GitDelivery.objects.update_or_create(
            team=team, defaults={**after, "last_error": "", "last_error_at": None}
        )
        trail.record(
            actor=actor,
            action=DELIVERY_SET,
            obj=team,
            team_slug=team.slug,
            before=before,
            after=after,
        )
        for model in (Deployment, Pipeline):
            model.objects.filter(team=team, is_retired=False).update(next_check_at=clock.now())


def delivery_of(team: Team) -> GitDelivery | None:
    return GitDelivery.objects.filter(team=team).first()


def test_connection(*, actor: Actor, team: Team) -> ConnectionTest:
    """Read the branch. Whether the credential may push shows only at the first commit."""
    policy.require_platform_admin(actor)
    delivery = delivery_of(team)
    if delivery is None:
        return ConnectionTest(ok=False, message="This team delivers directly to the cluster.")
    try:
        head = git.head_of(git_backend.remote_of(delivery))
    except GitError as error:
        return ConnectionTest(ok=False, message=error.message)
    where = f"{delivery.branch} of {delivery.repository_url}"
    state = f"is at {head[:8]}" if head else "is empty"
    return ConnectionTest(ok=True, message=f"{where} {state}.")


def _validate(draft: GitDraft) -> None:
    problems: dict[str, str] = {}
    if not _is_address(draft.repository_url):
        problems["repository_url"] = (
            "enter an address such as https://git.example.com/platform/fleet.git"
        )
    if not _BRANCH.fullmatch(draft.branch) or ".." in draft.branch or "//" in draft.branch:
        problems["branch"] = "enter the name of a branch, such as main"
    if not _PATH.fullmatch(draft.path):
        problems["path"] = "enter a folder such as teams/vision, without '..' and outer slashes"
    if ":" in draft.username or not draft.username.isprintable():
        problems["username"] = "enter a name without ':'"
    if draft.credential and not git_credentials.NAME.fullmatch(draft.credential):
        problems["credential"] = "enter the name of a file in the folder of Git credentials"
    if problems:
        listed = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        raise Invalid(f"Delivery through Git cannot be set: {listed}.", fields=problems)


def _is_address(url: str) -> bool:
    """Whether the URL may be used: https unless it is a loopback address, and without a password, because it is
    shown.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if not url.isprintable() or " " in url or "@" in parts.netloc or parts.query or parts.fragment:
        return False
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    return is_safe and bool(parts.hostname) and len(parts.path) > 1
