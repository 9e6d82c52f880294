"""Delegations: a lead names a member who may approve for them during an absence."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Delegation, Membership, Role, Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound

DELEGATED = register("delegation.made", "added a delegate in")
ENDED = register("delegation.ended", "ended a delegation in")
MAX_DAYS = 60
_LONGEST_REASON = 300


def name_delegate(
    *, actor: User, team: Team, username: str, starts_at: datetime, ends_at: datetime, reason: str
) -> Delegation:
    """Add a delegate of the actor. Raises Forbidden unless the actor leads the team, Invalid for an invalid
    period or person.
    """
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    if not Membership.objects.filter(user=actor, team=team, role=Role.LEAD).exists():
        raise Forbidden(
            f"Only a lead of {team.slug} can add a delegate.",
            code="role_required",
        )
    delegate = _delegate(team, actor, username)
    why = _check_period(starts_at, ends_at, reason)
    overlapping = Delegation.objects.filter(
        team=team,
        lead=actor,
        delegate=delegate,
        ended_at=None,
        starts_at__lt=ends_at,
        ends_at__gt=starts_at,
    )
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        if overlapping.exists():
            raise Conflict(
                f"{username} is already your delegate in that period. End that delegation first.",
                code="delegated_already",
            )
        delegation = Delegation.objects.create(
            team=team,
            lead=actor,
            delegate=delegate,
            reason=why,
            starts_at=starts_at,
            ends_at=ends_at,
            created_at=clock.now(),
        )
        trail.record(
            actor=actor,
            action=DELEGATED,
            obj=team,
            team_slug=team.slug,
            after=_audited(delegation),
            reason=why,
        )
    return delegation


def end(*, actor: User, team: Team, delegation_id: int) -> Delegation:
    """End a delegation. Everyone who manages the team's members may: it only removes approval rights."""
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    row = _rows(team).filter(pk=delegation_id, ended_at=None).first()
    if row is None:
        raise NotFound(f"{team.slug} has no active delegation {delegation_id}.")
    with transaction.atomic():
        at = clock.now()
        if Delegation.objects.filter(pk=row.pk, ended_at=None).update(ended_at=at) == 0:
            raise Conflict("Someone else has just ended this delegation.", code="delegation_ended")
        trail.record(
            actor=actor,
            action=ENDED,
            obj=team,
            team_slug=team.slug,
            before=_audited(row),
        )
    row.ended_at = at
    return row


def list_open(*, actor: User, team: Team) -> QuerySet[Delegation]:
    """List the current and future delegations, which the whole team may see."""
    policy.require(actor, Action.VIEW, team)
    return _rows(team).filter(ended_at=None, ends_at__gt=clock.now()).order_by("starts_at", "id")


def _rows(team: Team) -> QuerySet[Delegation]:
    return Delegation.objects.filter(team=team).select_related("lead", "delegate")


def _delegate(team: Team, actor: User, username: str) -> User:
    memberships = Membership.objects.filter(
        team=team, user__username=username, user__service_team=None
    ).select_related("user")
    membership = memberships.first()
    if membership is None:
        raise Invalid(
            f"{username} is not in {team.slug}. Add them to the team first.",
            fields={"username": "must be in the team"},
        )
    if membership.user_id == actor.pk:
        raise Invalid("You can't be your own delegate.", fields={"username": "choose someone else"})
    if membership.role == Role.LEAD:
        raise Invalid(
            f"{username} is already a lead and can approve without a delegation.",
            fields={"username": "already a lead"},
        )
    if membership.role == Role.VIEWER:
        raise Invalid(
            f"{username} is a viewer in {team.slug} and can't approve there. "
            "Choose a member, or give them the member role first.",
            fields={"username": "must be a member"},
        )
    return membership.user


def _check_period(starts_at: datetime, ends_at: datetime, reason: str) -> str:
    if ends_at <= clock.now() or ends_at <= starts_at:
        raise Invalid(
            "The period must end in the future and after its start.",
            fields={"ends_at": "later than now and than the start"},
        )
    if ends_at - starts_at > timedelta(days=MAX_DAYS):
        raise Invalid(
            f"A delegation can last {MAX_DAYS} days at most. For longer, make them a lead.",
            fields={"ends_at": f"at most {MAX_DAYS} days"},
        )
    text = reason.strip()
    if not text or len(text) > _LONGEST_REASON:
        raise Invalid(
            f"Enter a reason of at most {_LONGEST_REASON} characters.",
            fields={"reason": "enter a reason" if not text else "too long"},
        )
    return text


def _audited(row: Delegation) -> dict[str, str]:
    return {
        "lead": row.lead.username,
        "delegate": row.delegate.username,
        "from": row.starts_at.isoformat(),
        "until": row.ends_at.isoformat(),
    }
