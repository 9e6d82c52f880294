"""What a sign-in writes, to compare."""

from __future__ import annotations

from django.test import Client

from portal.accounts.models import Identity, Membership, User
from tests.accounts import events_besides_sign_ins


def counts() -> tuple[int, ...]:
    kept = (User.objects, Identity.objects, Membership.objects, events_besides_sign_ins())
    return tuple(rows.count() for rows in kept)


def roles_of(username: str) -> dict[str, str]:
    rows = Membership.objects.filter(user__username=username).select_related("team")
    return {row.team.slug: row.role for row in rows}


def who(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None
