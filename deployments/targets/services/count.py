"""Count the requests of targets: each minute what telemetry has since the last time.

What was counted is written in one transaction with the end of the leases, so a crash repeats the count; counts are
replaced, never added to, so repeating changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from deployments.models import ServiceTarget, TargetCount
from deployments.targets.domain import burn
from deployments.targets.domain.burn import RequestSums
from deployments.targets.selectors import minutes
from fleet.gpus.domain.intervals import hour_of, minute_of
from portal.core import clock, leases
from portal.core.leases import Lease

BATCH: Final = 100
EVERY: Final = timedelta(seconds=60)
# Minutes are summed again until this long after they ended.
_LOOK_BACK: Final = timedelta(minutes=5)
# The longest burn rate needs 6 hours of minutes; whole hours, because hours are summed up from them.
_KEEP_MINUTES: Final = timedelta(hours=7)
_KEEP_HOURS: Final = timedelta(days=31)
# Whatever the window of the target: it may be made longer.
_FIRST: Final = timedelta(days=30)
_LEASE_SECONDS: Final = 120.0
_FIELDS: Final = ["total", "bad", "known_minutes"]


def sweep() -> int:
    """Count what is due; return the number of targets. One that was never counted is counted alone: it reads
    telemetry of its whole window.
    """
    at = clock.now()
    rows = ServiceTarget.objects.filter(
        leases.free(at), next_check_at__lte=at, deployment__is_retired=False
    ).order_by("next_check_at")
    pks = list(rows.values_list("pk", flat=True)[:BATCH])
    claimed = leases.claim_many(ServiceTarget, pks, seconds=_LEASE_SECONDS) if pks else {}
    targets = ServiceTarget.objects.select_related("deployment").in_bulk(claimed)
    old = [target for target in targets.values() if target.counted_until is not None]
    if old:
        _count(old, claimed, at)
    for target in targets.values():
        if target.counted_until is None:
            _count([target], claimed, at)
    return len(targets)


def _count(targets: Sequence[ServiceTarget], claimed: Mapping[int, Lease], at: datetime) -> None:
    start = min(_start(target, at) for target in targets)
    fresh = minutes.read_minutes(targets, start=start)
    first = hour_of(start)
    with transaction.atomic():
        held = [target for target in targets if _release(claimed[target.pk], at)]
        stored = _stored(held, first)
        rows: list[TargetCount] = []
        for target in held:
            begin = minute_of(_start(target, at))
            own = {minute: sums for minute, sums in fresh[target.pk].items() if minute >= begin}
            rows += _rows(target, own, stored.get(target.pk, {}), at)
        TargetCount.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["target", "seconds", "start"],
            update_fields=_FIELDS,
            batch_size=500,
        )
        _forget(held, at)
        ServiceTarget.objects.filter(pk__in=[target.pk for target in held]).update(counted_until=at)


def _start(target: ServiceTarget, at: datetime) -> datetime:
    earliest = at - _FIRST
    if target.counted_until is None:
        return earliest
    return max(earliest, target.counted_until - _LOOK_BACK)


def _release(lease: Lease, at: datetime) -> bool:
    """Release the lease. False when it was lost, or the target was changed or removed meanwhile."""
    return leases.release(ServiceTarget, lease, next_check_at=at + EVERY)


def _stored(
    targets: Sequence[ServiceTarget], first: datetime
) -> dict[int, dict[datetime, RequestSums]]:
    rows = TargetCount.objects.filter(target__in=targets, seconds=60, start__gte=first)
    stored: dict[int, dict[datetime, RequestSums]] = {}
    for target_id, start, total, bad in rows.values_list("target_id", "start", "total", "bad"):
        stored.setdefault(target_id, {})[start] = RequestSums(total, bad, 1)
    return stored


def _rows(
    target: ServiceTarget,
    fresh: Mapping[datetime, RequestSums],
    stored: Mapping[datetime, RequestSums],
    at: datetime,
) -> Iterator[TargetCount]:
    kept = _kept_from(at)
    for start, sums in fresh.items():
        if start >= kept:
            yield _row(target, start, 60, sums)
    by_hour: dict[datetime, list[RequestSums]] = {}
    for start, sums in {**stored, **fresh}.items():
        by_hour.setdefault(hour_of(start), []).append(sums)
    touched = {hour_of(start) for start in fresh}
    for hour in sorted(touched):
        yield _row(target, hour, 3600, burn.add(by_hour[hour]))


def _row(target: ServiceTarget, start: datetime, seconds: int, sums: RequestSums) -> TargetCount:
    return TargetCount(
        target=target,
        start=start,
        seconds=seconds,
        total=sums.total,
        bad=sums.bad,
        known_minutes=sums.known_minutes,
    )


def _forget(targets: Sequence[ServiceTarget], at: datetime) -> None:
    rows = TargetCount.objects.filter(target__in=targets)
    rows.filter(seconds=60, start__lt=_kept_from(at)).delete()
    rows.filter(seconds=3600, start__lt=at - _KEEP_HOURS).delete()


def _kept_from(at: datetime) -> datetime:
    return hour_of(at - _KEEP_MINUTES)
