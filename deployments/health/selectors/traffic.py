"""The traffic of many deployments, all revisions together: the last hour, and the history it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.health.domain import baseline
from deployments.health.domain.baseline import HourlyTraffic
from deployments.models import Deployment, Revision
from fleet.telemetry.selectors import hourly
from fleet.telemetry.selectors.hourly import HourlyWorkload, WorkloadTraffic

_HOUR: Final = timedelta(hours=1)
_HOURS: Final = 24 * baseline.DAYS
# An hour in which a pod was read for less is not known.
_LEAST_OBSERVED_MS: Final = 1_800_000


@dataclass(frozen=True, slots=True)
class DeploymentTraffic:
    """The traffic of a deployment now and before. `history` as `baseline.compare` takes it."""

    now: HourlyTraffic | None
    history: Sequence[HourlyTraffic | None]


def read_traffic(
    deployments: Sequence[Deployment], *, at: datetime
) -> dict[int, DeploymentTraffic]:
    """Read the traffic of each deployment in four queries, keyed by the deployment's primary key."""
    of_deployment: dict[int, list[HourlyWorkload]] = {row.pk: [] for row in deployments}
    by_id = {row.pk: row for row in deployments}
    numbers = Revision.objects.filter(deployment__in=by_id).values_list("deployment_id", "number")
    for deployment_id, number in numbers:
        row = by_id[deployment_id]
        key = HourlyWorkload(row.cluster_id, row.namespace, f"{row.name}-r{number}")
        of_deployment[deployment_id].append(key)
    ids = hourly.find([key for keys in of_deployment.values() for key in keys])
    start = baseline.history_start(at)
    hours = hourly.by_hour(ids.values(), start=start, hours=_HOURS)
    latest = hourly.since(ids.values(), start=at - _HOUR)
    # The last full hour at most; later ones are still being counted.
    complete = int((at - _HOUR - start) / _HOUR)
    made = {}
    for deployment_id, keys in of_deployment.items():
        own = [ids[key] for key in keys if key in ids]
        history = [
            _hour(hours[pk][index] for pk in own if pk in hours and index in hours[pk])
            if index <= complete
            else None
            for index in range(_HOURS)
        ]
        now = _sum(latest[pk] for pk in own if pk in latest)
        made[deployment_id] = DeploymentTraffic(now, history)
    return made


def _hour(rows: Iterable[WorkloadTraffic]) -> HourlyTraffic | None:
    traffic = _sum(rows)
    is_known = traffic is not None and traffic.observed_ms >= _LEAST_OBSERVED_MS
    return traffic if is_known else None


def _sum(rows: Iterable[WorkloadTraffic]) -> HourlyTraffic | None:
    """Sum the rows. `seconds` is their maximum, because revisions ran side by side. None without rows."""
    listed = list(rows)
    if not listed:
        return None
    return HourlyTraffic(
        requests=sum(row.success + row.failure for row in listed),
        failures=sum(row.failure for row in listed),
        duration_us=sum(row.duration_us for row in listed),
        busy_ms=sum(row.busy_ms for row in listed),
        observed_ms=sum(row.observed_ms for row in listed),
        seconds=max(row.seconds for row in listed),
    )
