"""Sum up the readings of days that are over, and of the running day up to its last final hour.

A day is summed up once, the running one after each hour; repeated runs change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Min, Q, QuerySet, Sum

from fleet.gpus.domain.intervals import hour_of
from fleet.models import SummedDay, TeamUsageDay, TeamUsageHour, WorkloadDay, WorkloadHour
from fleet.models.days import UsageSum
from portal.core import clock

logger = logging.getLogger(__name__)

_DAY = timedelta(days=1)
# Readings change the hours of a few minutes ago (rollups): a day is final after this.
_FINAL_AFTER = timedelta(hours=1)
_DAYS_PER_RUN = 40
_SUMS = {
    "request_success": Sum("request_success"),
    "request_failure": Sum("request_failure"),
    "inference_count": Sum("inference_count"),
    "tokens": Sum(F("prompt_tokens") + F("generation_tokens")),
    "observed_ms": Sum("observed_ms"),
    "gpu_busy_ms": Sum("gpu_busy_ms"),
    "gpu_busy_source": Max("gpu_busy_source"),
    "energy_mj": Sum("energy_mj"),
    "energy_ms": Sum("energy_ms"),
}


def sum_up_finished() -> list[date]:
    """Return the days that were summed up, the oldest first."""
    first = WorkloadHour.objects.aggregate(first=Min("start"))["first"]
    if first is None:
        return []
    done = set(SummedDay.objects.filter(until=None).values_list("day", flat=True))
    last = (clock.now() - _FINAL_AFTER).astimezone(UTC).date()
    due = [day for day in _days(first.astimezone(UTC).date(), last) if day not in done]
    return [day for day in due[:_DAYS_PER_RUN] if _sum_up(day)]


def sum_up_running() -> bool:
    """Sum up the final hours of the current day. False if none is final or they are summed up already."""
    until = hour_of((clock.now() - _FINAL_AFTER).astimezone(UTC))
    day = until.date()
    is_done = SummedDay.objects.filter(Q(until=None) | Q(until__gte=until), day=day).exists()
    return not is_done and until.hour > 0 and _sum_up(day, until)


def forget(*, start: datetime) -> None:
    """Forget the sums of days from `start` on, whose hours were written late: they are read by the hour until
    summed up again.
    """
    with transaction.atomic():
        for model in (SummedDay, WorkloadDay, TeamUsageDay):
            model.objects.filter(day__gte=start.astimezone(UTC).date()).delete()
        TeamUsageHour.objects.filter(hour__gte=_midnight(start.astimezone(UTC).date())).delete()


def _sum_up(day: date, until: datetime | None = None) -> bool:
    """Sum up a day until `until`; None means the whole day. Returns False if another worker did so first."""
    start = _midnight(day)
    end = until or start + _DAY
    hours = WorkloadHour.objects.filter(start__gte=start, start__lt=end).order_by()
    team = {"team_slug": F("workload__team__slug"), "cluster_name": F("workload__cluster__name")}
    try:
        with transaction.atomic():
            # What was summed up while the day ran.
            SummedDay.objects.filter(day=day).exclude(until=None).delete()
            SummedDay.objects.create(day=day, until=until, has_hours=True)
            for model in (WorkloadDay, TeamUsageDay):
                model.objects.filter(day=day).delete()
            TeamUsageHour.objects.filter(hour__gte=start, hour__lt=start + _DAY).delete()
            _store(WorkloadDay, hours, {"workload_id": F("workload_id")}, day=day)
            _store(TeamUsageDay, hours, team, day=day)
            _store(TeamUsageHour, hours, {"hour": F("start"), **team})
    except IntegrityError:
        return False
    logger.info("telemetry: summed up %s", until or day)
    return True


def _store(
    model: type[UsageSum], hours: QuerySet[WorkloadHour], names: Mapping[str, F], **of_all: Any
) -> None:
    """Store the sums of the hours for each group of `names`, which are columns of the model."""
    rows = hours.values(**{f"_{name}": one for name, one in names.items()})
    sums: Iterable[Any] = rows.annotate(**{f"_{name}": one for name, one in _SUMS.items()})
    columns = [*names, *_SUMS]
    model._default_manager.bulk_create(
        (model(**of_all, **{name: row[f"_{name}"] for name in columns}) for row in sums),
        batch_size=2000,
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _days(first: date, end: date) -> Iterator[date]:
    while first < end:
        yield first
        first += _DAY
