"""Sum up the readings of days that are over, and of the running day up to its last final hour.

A day is summed up once, the running one after each hour; repeated runs change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Min, Q, Sum

from fleet.gpus.domain.intervals import hour_of
from fleet.models import SummedDay, TeamUsageDay, WorkloadDay, WorkloadHour
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
    """Of this day, the hours that are final. False when they are summed up already."""
    until = hour_of((clock.now() - _FINAL_AFTER).astimezone(UTC))
    day = until.date()
    is_done = SummedDay.objects.filter(Q(until=None) | Q(until__gte=until), day=day).exists()
    return not is_done and until.hour > 0 and _sum_up(day, until)


def forget(*, start: datetime) -> None:
    """Hours from then on were written late: their days are read by the hour until summed up anew."""
    with transaction.atomic():
        for model in (SummedDay, WorkloadDay, TeamUsageDay):
            model.objects.filter(day__gte=start.astimezone(UTC).date()).delete()


def _sum_up(day: date, until: datetime | None = None) -> bool:
    """False when another worker did so first. `until` None: the whole day."""
    start = datetime.combine(day, time(), tzinfo=UTC)
    end = until or start + _DAY
    hours = WorkloadHour.objects.filter(start__gte=start, start__lt=end).order_by()
    names = {"slug": F("workload__team__slug"), "cluster": F("workload__cluster__name")}
    workloads = hours.values("workload_id").annotate(**{f"_{k}": v for k, v in _SUMS.items()})
    teams = hours.values(**names).annotate(**{f"_{k}": v for k, v in _SUMS.items()})
    try:
        with transaction.atomic():
            # What was summed up while the day ran.
            SummedDay.objects.filter(day=day).exclude(until=None).delete()
            SummedDay.objects.create(day=day, until=until)
            for model in (WorkloadDay, TeamUsageDay):
                model.objects.filter(day=day).delete()
            WorkloadDay.objects.bulk_create(
                (
                    WorkloadDay(
                        day=day,
                        workload_id=row["workload_id"],
                        **{name: row[f"_{name}"] for name in _SUMS},
                    )
                    for row in map(dict[str, Any], workloads)
                ),
                batch_size=2000,
            )
            TeamUsageDay.objects.bulk_create(
                (
                    TeamUsageDay(
                        day=day,
                        team_slug=row["slug"],
                        cluster_name=row["cluster"],
                        **{name: row[f"_{name}"] for name in _SUMS},
                    )
                    for row in map(dict[str, Any], teams)
                ),
                batch_size=2000,
            )
    except IntegrityError:
        return False
    logger.info("telemetry: summed up %s", until or day)
    return True


def _days(first: date, end: date) -> Iterator[date]:
    while first < end:
        yield first
        first += _DAY
