"""The traffic of the last day, from the minutes of workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Sum

from fleet.gpus.domain.intervals import minute_of
from fleet.models import WorkloadMinute
from portal.core import clock

_DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class DayTraffic:
    """The traffic of a day. `seconds` are those of the minutes in which a pod was read."""

    requests: int
    failures: int
    seconds: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def last_day(*, cluster_id: int, namespace: str, names: Sequence[str]) -> DayTraffic | None:
    """Return the traffic of these workloads together in the last 24 hours. None if they were not read or got no
    request.
    """
    row = WorkloadMinute.objects.filter(
        workload__cluster_id=cluster_id,
        workload__namespace=namespace,
        workload__name__in=names,
        start__gte=minute_of(clock.now() - _DAY),
        observed_ms__gt=0,
    ).aggregate(
        success=Sum("request_success"),
        failure=Sum("request_failure"),
        minutes=Count("start", distinct=True),
    )
    requests = (row["success"] or 0) + (row["failure"] or 0)
    if not requests:
        return None
    return DayTraffic(requests, failures=row["failure"] or 0, seconds=60 * row["minutes"])
