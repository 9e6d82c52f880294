"""Invitations by link: somebody without an account makes one, in a team, with a role."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from portal.accounts import four_eyes, policy, roles
from portal.accounts.local import links, new_accounts, step_up
from portal.accounts.local.links import LinkDead
from portal.accounts.local.models import Invitation
from portal.accounts.models import AccountHolder, Membership, Role, Team, User
from portal.accounts.policy import SYSTEM, Action
from portal.accounts.teams import MEMBER_SET
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock, rate_limits
from portal.core.errors import Conflict, Invalid, NotFound
from portal.core.rate_limits import Limit
from portal.core.wakeups import wake

INVITED: Final = register("invitation.made", "invited a person to")
REVOKED: Final = register("invitation.revoked", "revoked an invitation to")
LIFETIME: Final = timedelta(days=7)
# Each may send a message to any address.
OF_PERSON: Final = Limit("invitations of a person", 50, 24 * 3600)
_MAX_NAME: Final = 150
_FIX: Final = {
    "used": "This invitation has been used. If you made the account, sign in.",
    "revoked": "This invitation was revoked.",
    "expired": "This invitation has expired.",
}


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """The path with the token, which is shown once. Empty where the link is mailed: whoever opens it then has
    shown that the address is theirs.
    """

    row: Invitation
    path: str


def invite(*, actor: User, team: Team, name: str, email: str, role: str) -> NewInvitation:
    """Invite a person. Leads invite to their own team, platform admins to any. Raises Invalid, Conflict and
    Forbidden.
    """
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    name, email = _checked_person(name, email)
    if role not in Role.values:
        raise Invalid(
            f"Unknown role. Use one of: {', '.join(Role.values)}.", fields={"role": "unknown"}
        )
    _require_invitable(actor, email)
    at = clock.now()
    try:
        with transaction.atomic():
            links.revoke(Invitation, team=team, email=email, expires_at__lte=at)
            row = Invitation.objects.create(
                **links.new_fields(),
                name=name,
                email=email,
                team=team,
                role=role,
                created_by=actor,
                created_at=at,
                expires_at=at + LIFETIME,
                next_check_at=at if links.can_mail() else None,
            )
            trail.record(
                actor=actor,
                action=INVITED,
                obj=team,
                team_slug=team.slug,
                after={"name": name, "email": email, "role": role},
            )
            if row.next_check_at is not None:
                wake("notifications.mail_links")
    except IntegrityError as error:
        raise Conflict(
            f"{email} has an open invitation to {team.slug}. Revoke it first to make another link.",
            code="invited_already",
            fields={"email": "invited already"},
        ) from error
    is_mailed = row.next_check_at is not None
    return NewInvitation(row, "" if is_mailed else f"/invitation/{links.derive_token(row.nonce)}")


def list_open(*, actor: User, team: Team | None = None) -> QuerySet[Invitation]:
    """List the invitations that can be used or have expired, newest first, of a team or of all teams that the actor
    leads.
    """
    if team is not None:
        policy.require(actor, Action.MANAGE_MEMBERS, team)
    teams = [team] if team is not None else roles.led_teams(actor)
    rows = Invitation.objects.filter(team__in=teams, used_at=None, revoked_at=None)
    return rows.select_related("team", "created_by").order_by("-id")


def revoke(*, actor: User, invitation_id: int) -> Invitation:
    rows = Invitation.objects.select_related("team")
    row = rows.filter(pk=invitation_id).first()
    if row is None:
        raise NotFound("The invitation does not exist.")
    policy.require(actor, Action.MANAGE_MEMBERS, row.team)
    with transaction.atomic():
        if not links.revoke(Invitation, pk=row.pk):
            raise Conflict("The invitation was already used or revoked.", code="invitation_over")
        trail.record(
            actor=actor,
            action=REVOKED,
            obj=row.team,
            team_slug=row.team.slug,
            before={"name": row.name, "email": row.email, "role": row.role},
        )
    return row


def revoke_invitations(inviter: User) -> int:
    """Revoke what a person who is being deactivated has handed out. Needs a transaction."""
    return links.revoke(Invitation, created_by=inviter)


def find(digest: str) -> Invitation:
    """Find an invitation that can be accepted now. Raises LinkDead, whose message says what to do."""
    rows = Invitation.objects.select_related("team", "created_by")
    row = rows.filter(digest=digest).first() if digest else None
    if row is None:
        raise LinkDead("This link is not complete, or it was opened elsewhere. Open it again.")
    dead = links.why_dead(row)
    if dead:
        raise LinkDead(_FIX[dead])
    inviter = row.created_by
    if inviter is None or not policy.is_allowed(inviter, Action.MANAGE_MEMBERS, row.team):
        raise LinkDead(
            "The person who invited you can no longer invite people. Ask for a new invitation."
        )
    return row


def accept(*, digest: str, username: str, password: str) -> User:
    """Make the account and use the link, both or neither. Raises LinkDead, Invalid and Conflict."""
    invitation = find(digest)
    reason = f"invited by {invitation.created_by.username}" if invitation.created_by else ""
    draft = new_accounts.check(
        username=username, password=password, name=invitation.name, email=invitation.email
    )
    with transaction.atomic():
        user = new_accounts.create(draft, reason=reason)
        if not links.use(Invitation, invitation, used_by=user):
            raise LinkDead(_FIX["used"])
        team = invitation.team
        Membership.objects.create(user=user, team=team, role=invitation.role)
        four_eyes.record(
            account=user,
            holder_id=invitation.created_by_id,
            means=AccountHolder.Means.INVITATION,
        )
        trail.record(
            actor=SYSTEM,
            action=MEMBER_SET,
            obj=team,
            team_slug=team.slug,
            before={user.username: None},
            after={user.username: invitation.role},
            reason=reason,
        )
    return user


def _checked_person(name: str, email: str) -> tuple[str, str]:
    name, email = " ".join(name.split()), email.strip().lower()
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise Invalid(
            f"Enter the person's name, {_MAX_NAME} characters at most.",
            fields={"name": "not valid"},
        )
    try:
        validate_email(email)
    except ValidationError as error:
        raise Invalid(
            "Enter one e-mail address, for example ana@example.org.", fields={"email": "not valid"}
        ) from error
    return name, email


def _require_invitable(actor: User, email: str) -> None:
    if User.objects.filter(email__iexact=email).exists():
        raise Conflict(
            f"Someone with the address {email} has an account already. Add them as a member by username.",
            code="account_exists",
            fields={"email": "has an account"},
        )
    if not rate_limits.count(OF_PERSON, str(actor.pk)):
        raise Conflict(
            f"You have sent {OF_PERSON.max_count} invitations today. Try again tomorrow.",
            code="too_many",
        )
