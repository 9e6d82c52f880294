"""Traffic of workloads over hours and days, in slots of the length that a chart has room for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from fleet.gpus.domain.intervals import HOUR, hour_of, minute_of
from fleet.models import WorkloadHour, WorkloadMinute
from fleet.telemetry.domain.traffic_slots import TrafficSlot, reduce_slots
from portal.core import clock
from portal.core.definitions import time_slots

_SUMS: Final = (
    *("request_success", "request_failure", "request_duration_us"),
    *("first_tokens", "first_token_us"),
)
_MINUTE_SECONDS: Final = 60
_HOUR_SECONDS: Final = 3600


def read_slots(
    *, cluster_id: int, namespace: str, names: Collection[str], start: datetime, step: timedelta
) -> Mapping[str, list[TrafficSlot]]:
    """Return the traffic of each workload from `start` on, oldest first. Slots that nothing was read in are left out,
    and so is the current minute, which is incomplete. Whole hours come from sums of hours, which are kept longer
    than minutes.
    """
    if not names:
        return {}
    this_minute = minute_of(clock.now())
    minutes_from, slots = start, dict[str, list[TrafficSlot]]()
    if step >= HOUR:
        minutes_from = hour_of(this_minute)
        slots = _read_hours(cluster_id, namespace, names, start, minutes_from)
    rows = WorkloadMinute.objects.filter(
        workload__cluster_id=cluster_id,
        workload__namespace=namespace,
        workload__name__in=names,
        start__gte=minutes_from,
        start__lt=this_minute,
        observed_ms__gt=0,
    ).values_list("workload__name", "start", *_SUMS)
    by_name = _group(
        (name, TrafficSlot(at, _MINUTE_SECONDS, *sums)) for name, at, *sums in rows.order_by()
    )

    def find_start(at: datetime) -> datetime:
        return time_slots.floor_to(at, step)

    return {
        name: reduce_slots([*slots.get(name, []), *by_name.get(name, [])], find_start)
        for name in names
    }


def _read_hours(
    cluster_id: int, namespace: str, names: Collection[str], start: datetime, end: datetime
) -> dict[str, list[TrafficSlot]]:
    rows = WorkloadHour.objects.filter(
        workload__cluster_id=cluster_id,
        workload__namespace=namespace,
        workload__name__in=names,
        start__gte=start,
        start__lt=end,
        observed_ms__gt=0,
    ).values_list("workload__name", "start", "observed_ms", *_SUMS)
    return _group(
        (name, TrafficSlot(at, min(_HOUR_SECONDS, max(1, observed_ms // 1000)), *sums))
        for name, at, observed_ms, *sums in rows.order_by()
    )


def _group(slots: Iterable[tuple[str, TrafficSlot]]) -> dict[str, list[TrafficSlot]]:
    by_name: dict[str, list[TrafficSlot]] = defaultdict(list)
    for name, slot in slots:
        by_name[name].append(slot)
    return by_name
