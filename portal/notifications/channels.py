"""Channels of teams, managed by their leads, and of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import transaction

from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound
from portal.notifications import addresses, events, services, vault
from portal.notifications.models import Channel, Notice

ADDED = register("channel.added", "added a channel of")
CHANGED = register("channel.changed", "changed a channel of")
REMOVED = register("channel.removed", "removed a channel of")
_MOST: Final = 20


def list_of_team(*, actor: User, team: Team) -> list[Channel]:
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    return list(Channel.objects.filter(team=team).select_related("created_by"))


def list_of_person(actor: User) -> list[Channel]:
    return list(Channel.objects.filter(user=actor).select_related("created_by"))


def add(
    *,
    actor: User,
    team: Team | None,
    name: str,
    kind: str,
    address: str,
    event_codes: Sequence[str] = (),
) -> Channel:
    """Add a channel to a team or, with `team=None`, to the actor. The address is never shown again."""
    if team is not None:
        policy.require(actor, Action.MANAGE_MEMBERS, team)
    _check_events(event_codes)
    if not name.strip():
        raise Invalid("Enter a channel name.", fields={"name": "required"})
    channels = Channel.objects.filter(team=team) if team else Channel.objects.filter(user=actor)
    if channels.count() >= _MOST:
        raise Conflict(f"You can have {_MOST} channels at most. Remove one first.", code="too_many")
    # Resolves a host name, so it runs before the transaction.
    checked = addresses.check(kind, address)
    with transaction.atomic():
        channel = Channel.objects.create(
            team=team,
            user=None if team else actor,
            name=name.strip(),
            kind=kind,
            sealed_address=vault.seal(checked.plain),
            hint=checked.hint,
            events=sorted(event_codes),
            created_by=actor,
            created_at=clock.now(),
        )
        _record(actor, channel, ADDED, after={"name": channel.name, "kind": kind})
    return channel


def subscribe(*, actor: User, channel_id: int, event_codes: Sequence[str], is_on: bool) -> None:
    channel = get_own(actor=actor, channel_id=channel_id)
    _check_events(event_codes)
    before = {"events": channel.events, "is_on": channel.is_on}
    after = {"events": sorted(event_codes), "is_on": is_on}
    with transaction.atomic():
        Channel.objects.filter(pk=channel.pk).update(**after)
        _record(actor, channel, CHANGED, before=before, after=after)


def remove(*, actor: User, channel_id: int) -> None:
    channel = get_own(actor=actor, channel_id=channel_id)
    with transaction.atomic():
        _record(actor, channel, REMOVED, before={"name": channel.name, "kind": channel.kind})
        channel.delete()


def try_out(*, actor: User, channel_id: int, path: str) -> None:
    """Send a test message through the outbox; its outcome is shown at the channel."""
    channel = get_own(actor=actor, channel_id=channel_id)
    team = channel.team or policy.visible_teams(actor).first()
    if team is None:
        raise Conflict(
            "You're not in a team yet, so there is nothing to notify you about.", code="no_team"
        )
    with transaction.atomic():
        notice = Notice.objects.create(
            team=team,
            event=events.CHANNEL_TEST.code,
            subject=f"Slipway can reach “{channel.name}”",
            message=f"Test message requested by {actor.display_name}. No action needed.",
            path=path,
            at=clock.now(),
            digest="",
        )
        services.send_to(notice=notice, channels=[channel])


def get_own(*, actor: User, channel_id: int) -> Channel:
    """Return a channel of the actor or of a team that they lead. Raises NotFound, and Forbidden for members."""
    rows = Channel.objects.select_related("team", "user")
    channel = rows.filter(pk=channel_id).first()
    if channel is None or (channel.user_id is not None and channel.user_id != actor.pk):
        raise NotFound("The channel does not exist, or it is not yours.")
    if channel.team is not None:
        policy.require(actor, Action.MANAGE_MEMBERS, channel.team)
    return channel


def _check_events(event_codes: Sequence[str]) -> None:
    unknown = events.list_unknown(event_codes)
    if unknown:
        raise Invalid(f"Unknown event: {unknown[0]}.", fields={"events": "unknown"})


def _record(
    actor: User,
    channel: Channel,
    action: AuditAction,
    *,
    before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
) -> None:
    team_slug = channel.team.slug if channel.team else ""
    trail.record(
        actor=actor,
        action=action,
        obj=channel,
        label=team_slug or actor.username,
        team_slug=team_slug,
        before=before,
        after=after,
    )
