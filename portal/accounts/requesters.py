"""Who counts as the requester of a change, and so may not decide on it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models import BigIntegerField, DateTimeField

from portal.accounts.models import ApiToken, User
from portal.core import clock
from portal.core.compiled_queries import CompiledQuery, Parameter

# Longer than a request waits for its approvals.
_HELD_FOR: Final = timedelta(days=30)
_HOLDERS = CompiledQuery(
    lambda: (
        ApiToken.objects.filter(
            user=Parameter("requester", BigIntegerField()),
            made_by__isnull=False,
            expires_at__gt=Parameter("since", DateTimeField()),
        )
        .exclude(revoked_at__lte=Parameter("since", DateTimeField()))
        .order_by()
        .values_list("made_by")
    )
)


def requesters(requester_id: int | None) -> frozenset[int]:
    """The person; of a service account also everyone who was shown a token of it that worked in the last
    weeks, and could have requested with it.
    """
    if requester_id is None:
        return frozenset()
    holders = _HOLDERS.rows(requester=requester_id, since=clock.now() - _HELD_FOR)
    return frozenset({requester_id, *(holder for (holder,) in holders)})


def requesters_of(requester: User) -> frozenset[int]:
    """As `requesters`, without a query for a person."""
    return requesters(requester.pk) if requester.is_service_account else frozenset({requester.pk})
