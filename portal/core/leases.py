"""Leases on rows by compare-and-swap, so that no lock is held during I/O.

Leased models have `next_check_at`, `lease_until` and `lease_token`. A worker whose lease expired fails
`is_held` and must not write: its token is stale.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Case, Count, Expression, F, Min, Q, QuerySet, Value, When

from portal.core import clock
from portal.core.errors import Conflict


class Leased(models.Model):
    next_check_at = models.DateTimeField(null=True, blank=True, db_index=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_token = models.CharField(max_length=32, blank=True, default="")
    check_failures = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True)
class Lease:
    pk: int
    token: str
    until: datetime


def free(at: datetime) -> Q:
    """Return a condition for rows that no worker holds."""
    return Q(lease_until__isnull=True) | Q(lease_until__lte=at)


def build_lost_error(row: object) -> Conflict:
    """Return the error to raise if `is_held` is False or `renew` returns None."""
    return Conflict(f"Another worker took over the {row}.", code="lease_lost")


def due(model: type[Leased], *, limit: int = 100) -> list[int]:
    """Return the primary keys of rows that are due and not leased, oldest first."""
    at = clock.now()
    rows = model._default_manager.filter(free(at), next_check_at__lte=at).order_by("next_check_at")
    return list(rows.values_list("pk", flat=True)[:limit])


def has_due(model: type[Leased]) -> bool:
    return bool(due(model, limit=1))


@dataclass(frozen=True, slots=True)
class Backlog:
    """Rows that are due and that no worker holds; `oldest` is when the first of them fell due."""

    count: int
    oldest: datetime | None


def backlog(rows: QuerySet[Any]) -> Backlog:
    """Return the backlog in one query. `rows` are those that a sweep takes, without its order and limit."""
    at = clock.now()
    totals = rows.filter(free(at), next_check_at__lte=at).aggregate(
        count=Count("pk"), oldest=Min("next_check_at")
    )
    return Backlog(totals["count"], totals["oldest"])


def claim(model: type[Leased], pk: int, *, seconds: float = 60) -> Lease | None:
    """Lease the row for `seconds`, or return None when another worker holds it.

    The row is due again when the lease ends, so a worker that dies delays it by one lease.
    """
    at = clock.now()
    lease = Lease(pk=pk, token=secrets.token_hex(8), until=at + timedelta(seconds=seconds))
    claimed = model._default_manager.filter(free(at), pk=pk).update(
        lease_until=lease.until, lease_token=lease.token, next_check_at=lease.until
    )
    return lease if claimed == 1 else None


def claim_many(
    model: type[Leased], pks: Collection[int], *, seconds: float = 60
) -> dict[int, Lease]:
    """Claim many rows in one statement, as `claim` does for one. Rows that another worker holds are left out."""
    at = clock.now()
    token, until = secrets.token_hex(8), at + timedelta(seconds=seconds)
    model._default_manager.filter(free(at), pk__in=pks).update(
        lease_until=until, lease_token=token, next_check_at=until
    )
    claimed = model._default_manager.filter(pk__in=pks, lease_token=token)
    return {pk: Lease(pk, token, until) for pk in claimed.values_list("pk", flat=True)}


def nudge(model: type[Leased], pk: int) -> None:
    """Make the row due now; if it is leased, it is due right after its release."""
    model._default_manager.filter(pk=pk).update(next_check_at=clock.now())


def is_held(model: type[Leased], lease: Lease) -> bool:
    return model._default_manager.filter(
        pk=lease.pk, lease_token=lease.token, lease_until__gt=clock.now()
    ).exists()


def renew(model: type[Leased], lease: Lease, *, seconds: float = 60) -> Lease | None:
    """Extend the lease to `seconds` from now; None when it was lost. A nudge in the meantime is kept."""
    at = clock.now()
    until = at + timedelta(seconds=seconds)
    changed = model._default_manager.filter(
        pk=lease.pk, lease_token=lease.token, lease_until__gt=at
    ).update(
        lease_until=until,
        next_check_at=_next_check(lease, until),
    )
    return Lease(pk=lease.pk, token=lease.token, until=until) if changed == 1 else None


def release(model: type[Leased], lease: Lease, *, next_check_at: datetime | None) -> bool:
    """End the lease and set the next check (None: never). False when the lease was lost."""
    return _end_lease(model, lease, next_check_at=next_check_at, check_failures=Value(0))


def release_many(
    model: type[Leased], given: Collection[Lease], *, next_check_at: datetime | None
) -> None:
    """End the leases of one `claim_many`; rows whose lease was lost are left unchanged."""
    if given:
        first = next(iter(given))
        rows = model._default_manager.filter(pk__in=[lease.pk for lease in given])
        _write_back(rows, first, next_check_at=next_check_at, check_failures=Value(0))


def back_off(
    model: type[Leased],
    lease: Lease,
    *,
    base_seconds: float = 2,
    cap_seconds: float = 60,
    least_seconds: float = 0,
) -> bool:
    """End the lease after a temporary failure; each failure doubles the wait up to the cap.

    `least_seconds` is a Retry-After of the server and may exceed the cap.
    """
    failures = model._default_manager.filter(pk=lease.pk).values_list("check_failures", flat=True)
    wait = min(cap_seconds, base_seconds * 2 ** min(failures.first() or 0, 10))
    wait = max(wait, least_seconds)
    return _end_lease(
        model,
        lease,
        next_check_at=clock.now() + timedelta(seconds=wait),
        check_failures=F("check_failures") + 1,
    )


def _end_lease(
    model: type[Leased], lease: Lease, *, next_check_at: datetime | None, check_failures: Expression
) -> bool:
    """Keep an earlier next_check_at that a nudge set during the lease."""
    rows = model._default_manager.filter(pk=lease.pk)
    changed = _write_back(rows, lease, next_check_at=next_check_at, check_failures=check_failures)
    return changed == 1


def _write_back(
    rows: QuerySet[Leased],
    lease: Lease,
    *,
    next_check_at: datetime | None,
    check_failures: Expression,
) -> int:
    return rows.filter(lease_token=lease.token).update(
        lease_until=None,
        lease_token="",
        check_failures=check_failures,
        next_check_at=_next_check(lease, next_check_at),
    )


def _next_check(lease: Lease, at: datetime | None) -> Case:
    """`at`, or the earlier time that a nudge set during the lease."""
    nudged = When(next_check_at__lt=lease.until, then=F("next_check_at"))
    return Case(nudged, default=Value(at), output_field=models.DateTimeField())
