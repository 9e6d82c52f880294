"""Passwords of local accounts: changed by their owner, or set by a link."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction

from portal.accounts import four_eyes, people, policy
from portal.accounts.local import links, new_accounts, password_checks, sessions, step_up
from portal.accounts.local.links import LinkDead
from portal.accounts.local.models import PasswordLink
from portal.accounts.models import AccountHolder, User
from portal.accounts.policy import Action
from portal.accounts.sign_ins import Attempt
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock, rate_limits
from portal.core.errors import Conflict
from portal.core.rate_limits import Limit
from portal.core.wakeups import wake

CHANGED: Final = register("password.changed", "changed the password of")
RESET: Final = register("password.reset", "chose a new password by a link for")
LINK_MADE: Final = register("password.link_made", "made a password link for")
_BY_ADMIN: Final = timedelta(hours=24)
_BY_MAIL: Final = timedelta(hours=1)
OF_EMAIL: Final = Limit("password links to an address", 3, 3600)
OF_NETWORK: Final = Limit("password links from a network", 20, 3600)
# Accounts that share an address.
_MAX_ACCOUNTS: Final = 3
_FIX: Final = {
    "used": "This link has been used. If you chose the password, sign in with it.",
    "revoked": "A newer link replaced this one, or the password was changed since.",
    "expired": "This link has expired.",
}


@dataclass(frozen=True, slots=True)
class NewPasswordLink:
    """The path with the token, which is shown once."""

    row: PasswordLink
    path: str


def change(*, actor: User, current: str, new: str, attempt: Attempt, session_key: str) -> None:
    """Change the password. Other sessions and open password links end. Raises Invalid, Conflict and TooManyAttempts."""
    _require_password(actor)
    password_checks.require(actor, current, attempt=attempt, field="current")
    new_accounts.set_password(actor, new)
    with transaction.atomic():
        _save(actor, CHANGED, besides=session_key)


def make_link(*, actor: User, username: str) -> NewPasswordLink:
    """Create a password link for platform admins, who pass it on themselves. Earlier links stop working."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    step_up.require(actor)
    person = people.get(actor=actor, username=username)
    _require_password(person)
    if not person.is_active:
        raise Conflict(f"{username} is deactivated. Reactivate the account first.", code="inactive")
    with transaction.atomic():
        row = _create_link(person, lifetime=_BY_ADMIN, created_by=actor, is_mailed=False)
        _record_holder(row)
        trail.record(actor=actor, action=LINK_MADE, obj=person, label=username)
    return NewPasswordLink(row, f"/password-link/{links.derive_token(row.nonce)}")


def request_by_mail(*, email: str, network: str) -> None:
    """Say nothing about whether anybody has the address; the caller answers the same each time."""
    address = email.strip().lower()
    if not links.can_mail() or not rate_limits.count(OF_NETWORK, network):
        return
    if not rate_limits.count(OF_EMAIL, address):
        return
    theirs = User.objects.filter(email__iexact=address, is_active=True).order_by("pk")
    with transaction.atomic():
        for person in [user for user in theirs if user.has_usable_password()][:_MAX_ACCOUNTS]:
            _create_link(person, lifetime=_BY_MAIL, created_by=None, is_mailed=True)
            trail.record(
                actor=person,
                action=LINK_MADE,
                obj=person,
                label=person.username,
                reason="requested on the sign-in page",
            )
        wake("notifications.mail_links")


def find(digest: str) -> PasswordLink:
    """Find a link that can be used now. Raises LinkDead."""
    rows = PasswordLink.objects.select_related("user", "created_by")
    link = rows.filter(digest=digest).first() if digest else None
    if link is None:
        raise LinkDead("This link is not complete, or it was opened elsewhere. Open it again.")
    dead = links.why_dead(link)
    if dead:
        raise LinkDead(_FIX[dead])
    if not link.user.is_active:
        raise LinkDead("This account is deactivated.")
    return link


def choose(*, digest: str, password: str) -> User:
    """Set the password and end all sessions. A second factor stays, so this signs nobody in."""
    link = find(digest)
    new_accounts.set_password(link.user, password)
    by = link.created_by.username if link.created_by else "e-mail"
    with transaction.atomic():
        if not links.use(PasswordLink, link):
            raise LinkDead(_FIX["used"])
        _record_holder(link)
        _save(link.user, RESET, reason=f"link by {by}")
    return link.user


def _save(user: User, action: AuditAction, *, reason: str = "", besides: str | None = None) -> None:
    User.objects.filter(pk=user.pk).update(password=user.password)
    links.revoke(PasswordLink, user=user)
    ended = sessions.end_all(user, besides=besides)
    trail.record(
        actor=user,
        action=action,
        obj=user,
        label=user.username,
        after={"sessions_ended": ended},
        reason=reason,
    )


def _record_holder(link: PasswordLink) -> None:
    """Record who can act as the person. Called when an admin makes the link and when it is used: who has it can do
    so from either on.
    """
    four_eyes.record(
        account=link.user,
        holder_id=link.created_by_id,
        means=AccountHolder.Means.PASSWORD_LINK,
    )


def _create_link(
    person: User, *, lifetime: timedelta, created_by: User | None, is_mailed: bool
) -> PasswordLink:
    at = clock.now()
    # Whoever asks by mail does not end the link that an admin made.
    which = {"created_by": None} if is_mailed else {}
    links.revoke(PasswordLink, user=person, **which)
    return PasswordLink.objects.create(
        **links.new_fields(),
        user=person,
        created_by=created_by,
        created_at=at,
        expires_at=at + lifetime,
        next_check_at=at if is_mailed else None,
    )


def _require_password(person: User) -> None:
    if not person.has_usable_password():
        raise Conflict(
            f"{person.username} signs in with a provider and has no password here.",
            code="no_password",
        )
