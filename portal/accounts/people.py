"""People as platform admins manage them: deactivated, reactivated, connected with a provider."""

from __future__ import annotations

from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from portal.accounts import four_eyes, policy
from portal.accounts.local import invitations, links, sessions, step_up
from portal.accounts.local.models import PasswordLink
from portal.accounts.models import AccountHolder, ApiToken, Delegation, Identity, User
from portal.accounts.oidc.gateway import provider_named
from portal.accounts.policy import Action, Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

DEACTIVATED: Final = register("person.deactivated", "deactivated the account of")
REACTIVATED: Final = register("person.reactivated", "reactivated the account of")
CONNECTED: Final = register("person.connected", "connected a sign-in provider to the account of")
_MAX_SUBJECT: Final = 255


def list_matching(*, actor: Actor, text: str = "") -> QuerySet[User]:
    """List the people whose username, name or email address contains the text, by username."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    rows = (
        User.objects.filter(service_team=None)
        .order_by("username")
        .prefetch_related("memberships__team", "identities")
    )
    words = text.replace("\0", "").split()
    for word in words:
        rows = rows.filter(
            Q(username__icontains=word)
            | Q(first_name__icontains=word)
            | Q(last_name__icontains=word)
            | Q(email__icontains=word)
        )
    return rows


def count_platform_admins() -> int:
    return User.objects.filter(is_platform_admin=True, is_active=True).count()


def get(*, actor: Actor, username: str) -> User:
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    person = User.objects.filter(username=username, service_team=None).first()
    if person is None:
        raise NotFound(f"User {username} does not exist.")
    return person


def deactivate(*, actor: Actor, username: str, reason: str = "") -> User:
    """End sessions, API tokens, delegations and invitations at once. Roles stay, for the day the person comes back."""
    person = get(actor=actor, username=username)
    if isinstance(actor, User) and actor.pk == person.pk:
        raise Invalid("You can't deactivate your own account. Another platform admin can.")
    at = clock.now()
    with transaction.atomic():
        if not User.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            raise Conflict(f"{username} is already deactivated.", code="deactivated_already")
        tokens = ApiToken.objects.filter(user=person, revoked_at=None).update(revoked_at=at)
        open_delegations = Delegation.objects.filter(ended_at=None)
        delegations = open_delegations.filter(delegate=person).update(ended_at=at)
        delegations += open_delegations.filter(lead=person).update(ended_at=at)
        ended = sessions.end_all(person)
        invited = invitations.revoke_invitations(person)
        links.revoke(PasswordLink, user=person)
        trail.record(
            actor=actor,
            action=DEACTIVATED,
            obj=person,
            label=username,
            after={
                "tokens": tokens,
                "delegations": delegations,
                "sessions": ended,
                "invitations": invited,
            },
            reason=reason,
        )
    person.is_active = False
    return person


def reactivate(*, actor: Actor, username: str, reason: str = "") -> User:
    """Reactivate an account. The person may sign in again; tokens and delegations stay ended."""
    person = get(actor=actor, username=username)
    step_up.require(actor)
    with transaction.atomic():
        if not User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            raise Conflict(f"{username} is not deactivated.", code="active_already")
        trail.record(actor=actor, action=REACTIVATED, obj=person, label=username, reason=reason)
    person.is_active = True
    return person


def connect(*, actor: Actor, username: str, provider_name: str, subject: str) -> Identity:
    """Let the person of a local account sign in with a provider. Raises Conflict for a subject in use."""
    person = get(actor=actor, username=username)
    step_up.require(actor)
    provider = provider_named(provider_name)
    is_plain = subject.isprintable() and subject.strip() == subject
    if not is_plain or not 0 < len(subject) <= _MAX_SUBJECT:
        raise Invalid(
            "Enter the identifier as the sign-in page showed it.", fields={"subject": "not valid"}
        )
    try:
        with transaction.atomic():
            identity = Identity.objects.create(
                user=person,
                provider=provider.name,
                issuer=provider.issuer,
                subject=subject,
                created_at=clock.now(),
            )
            four_eyes.record(
                account=person,
                holder_id=actor.pk if isinstance(actor, User) else None,
                means=AccountHolder.Means.PROVIDER,
            )
            trail.record(
                actor=actor,
                action=CONNECTED,
                obj=person,
                label=username,
                after={"provider": provider.name, "subject": subject},
            )
    except IntegrityError as error:
        raise Conflict(
            f"{username} is connected with {provider.label} already, or that identifier is someone else's.",
            code="connected_already",
        ) from error
    return identity
