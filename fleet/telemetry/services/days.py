"""Sum up the readings of days that are over. A day is summed up once; repeated runs change nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Min, Sum

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
}


def sum_up_finished() -> list[date]:
    """Return the days that were summed up, the oldest first."""
    first = WorkloadHour.objects.aggregate(first=Min("start"))["first"]
    if first is None:
        return []
    done = set(SummedDay.objects.values_list("day", flat=True))
    last = (clock.now() - _FINAL_AFTER).astimezone(UTC).date()
    due = [day for day in _days(first.astimezone(UTC).date(), last) if day not in done]
    return [day for day in due[:_DAYS_PER_RUN] if _sum_up(day)]


def forget(*, start: datetime) -> None:
    """Hours from then on were written late: their days are read by the hour until summed up anew."""
    with transaction.atomic():
        for model in (SummedDay, WorkloadDay, TeamUsageDay):
            model.objects.filter(day__gte=start.astimezone(UTC).date()).delete()


def _sum_up(day: date) -> bool:
    """False when another worker did so first."""
    start = datetime.combine(day, time(), tzinfo=UTC)
    hours = WorkloadHour.objects.filter(start__gte=start, start__lt=start + _DAY).order_by()
    names = {"slug": F("workload__team__slug"), "cluster": F("workload__cluster__name")}
    workloads = hours.values("workload_id").annotate(**{f"_{k}": v for k, v in _SUMS.items()})
    teams = hours.values(**names).annotate(**{f"_{k}": v for k, v in _SUMS.items()})
    try:
        with transaction.atomic():
            SummedDay.objects.create(day=day)
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
    logger.info("telemetry: summed up %s", day)
    return True


def _days(first: date, end: date) -> Iterator[date]:
    while first < end:
        yield first
        first += _DAY
