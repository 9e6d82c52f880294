"""Users, teams and memberships with names of their own."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import Membership, Role, Team, User
from portal.audit.models import AuditEvent
from portal.core import clock

_numbers = itertools.count()


def events_besides_sign_ins() -> QuerySet[AuditEvent]:
    """The oldest first; nearly every test of accounts signs somebody in."""
    is_sign_in = {"action__in": ["session.began", "session.refused"]}
    return AuditEvent.objects.exclude(**is_sign_in).order_by("id")


def make_user(username: str = "", **fields: Any) -> User:
    return User.objects.create(username=username or f"person{next(_numbers)}", **fields)


def make_team(slug: str = "", **fields: Any) -> Team:
    slug = slug or f"team{next(_numbers)}"
    values = {
        "name": slug.title(),
        "quota_gpus": 4,
        "monthly_budget_amount": Decimal(1000),
        "created_at": clock.now(),
        **fields,
    }
    return Team.objects.create(slug=slug, **values)


def make_membership(
    *, user: User | None = None, team: Team | None = None, role: str = Role.MEMBER
) -> Membership:
    return Membership.objects.create(
        user=user or make_user(), team=team or make_team(), role=Role(role)
    )
