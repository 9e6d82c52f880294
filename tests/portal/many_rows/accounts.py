"""People, teams' people, their tokens, sessions, channels and the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from portal.accounts.local.models import BrowserSession, Invitation
from portal.accounts.models import (
    AccountHolder,
    ApiToken,
    Delegation,
    Membership,
    Role,
    ScimToken,
    Team,
    User,
)
from portal.audit.models import AuditEvent, ChainLink
from portal.core import clock
from portal.notifications.models import Channel, Delivery, Notice
from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows.copies import copies, digest


def fill(full: FullWorld, scale: float) -> list[User]:
    """The people who were made."""
    world, now = full.world, clock.now()
    teams = list(Team.objects.exclude(pk=world.team.pk).order_by("pk"))
    people = copies(
        world.viewer,
        1500 * scale,
        username=lambda n: f"person-{n}",
        first_name=lambda n: f"Ana {n}",
        email=lambda n: f"person-{n}@example.org",
    )
    own = Membership.objects.get(user=world.viewer)
    copies(
        own,
        200 * scale,
        user_id=lambda n: people[n - 1].pk,
        role=lambda n: (Role.VIEWER, Role.MEMBER, Role.LEAD)[n % 3],
    )
    copies(
        own,
        len(people) * 0.8,
        user_id=lambda n: people[-n].pk,
        team_id=lambda n: teams[n % len(teams)].pk,
    )
    for user in (world.admin, world.lead):
        _of_person(user, full, scale)
    copies(
        Delegation.objects.get(pk=full.names["delegation_id"]),
        100 * scale,
        starts_at=lambda n: now - timedelta(days=n + 1),
        ends_at=lambda n: now - timedelta(days=n),
    )
    copies(
        Invitation.objects.get(pk=full.names["invitation_id"]),
        200 * scale,
        email=lambda n: f"invited-{n}@example.org",
        digest=lambda n: digest("invitation", n),
    )
    AccountHolder.objects.bulk_create(
        AccountHolder(account=person, holder=world.lead, means="invitation", at=now)
        for person in people[: max(2, round(200 * scale))]
    )
    _services(full, scale)
    _messages(full, scale)
    _audit(full, scale)
    return people


def _of_person(user: User, full: FullWorld, scale: float) -> None:
    now = clock.now()
    token = ApiToken.objects.get(pk=full.names["token_id"])
    copies(
        token,
        60 * scale,
        user_id=lambda _: user.pk,
        name=lambda n: f"notebook-{n}",
        digest=lambda n: digest("token", user.pk, n),
    )
    BrowserSession.objects.bulk_create(
        BrowserSession(
            session_key=f"{user.pk}x{n:030}",
            session_data="",
            expire_date=now + timedelta(days=1),
            user=user,
            began_at=now,
            last_seen_at=now,
            user_agent="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            method="password",
        )
        for n in range(max(2, round(20 * scale)))
    )


def _services(full: FullWorld, scale: float) -> None:
    account = User.objects.get(username__endswith="ci", service_team=full.world.team)
    accounts = copies(account, 50 * scale, username=lambda n: f"{account.username}-{n}")
    token = ApiToken.objects.get(pk=full.names["service_token_id"])
    copies(
        token,
        2 * len(accounts),
        user_id=lambda n: accounts[n % len(accounts)].pk,
        digest=lambda n: digest("service", n),
    )
    now = clock.now()
    scim = ScimToken.objects.create(
        provider="lab",
        prefix="scim_",
        digest=digest("scim"),
        created_by=full.world.admin,
        created_at=now,
        expires_at=now + timedelta(days=90),
    )
    copies(scim, 20 * scale, digest=lambda n: digest("scim", n))


def _messages(full: FullWorld, scale: float) -> None:
    now = clock.now()
    channel = Channel.objects.get(pk=full.names["channel_id"])
    channels: Sequence[Channel] = copies(channel, 20 * scale, name=lambda n: f"mail-{n}")
    copies(
        channel,
        10 * scale,
        team_id=lambda _: None,
        user_id=lambda _: full.world.lead.pk,
        name=lambda n: f"own-{n}",
    )
    notice = Notice.objects.create(
        team=full.world.team,
        event="alert.opened",
        subject="Queue of vision/detector",
        message="Requests wait.",
        path="/alerts",
        at=now,
        digest=digest("notice"),
    )
    notices = copies(notice, 500 * scale, digest=lambda n: digest("notice", n))
    Delivery.objects.bulk_create(
        Delivery(
            notice=item,
            channel=channels[place % len(channels)],
            state="sent",
            deadline_at=now,
            finished_at=now,
        )
        for place, item in enumerate(notices)
    )


def _audit(full: FullWorld, scale: float) -> None:
    slugs = list(Team.objects.order_by("pk").values_list("slug", flat=True))
    event = AuditEvent.objects.filter(action="change.approved").order_by("-pk").first()
    event = event or AuditEvent.objects.order_by("-pk")[0]
    now, first = clock.now(), slugs.index(full.world.team.slug)
    made = copies(
        event,
        50_000 * scale,
        at=lambda n: now - timedelta(minutes=n),
        team_slug=lambda n: slugs[first if n % 10 == 0 else n % len(slugs)],
        object_id=lambda n: str(n % 5000),
    )
    ChainLink.objects.bulk_create(
        ChainLink(position=place, event_id=item.pk, hash=digest(place), sealed_at=now)
        for place, item in enumerate(made, start=1)
    )
