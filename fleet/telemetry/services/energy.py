"""Read the energy of hours that are over from Prometheus into the roll-ups of workloads.

An hour is read once. One that Prometheus does not answer for is tried again for a day; then it stays not known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.services import prometheus
from fleet.gpus.domain.intervals import HOUR, hour_of
from fleet.models import Cluster, EnergyReading, Pod, SummedDay, WorkloadHour
from fleet.telemetry.domain import energy
from fleet.telemetry.domain.energy import PodEnergy
from fleet.telemetry.services import days
from portal.core import clock

logger = logging.getLogger(__name__)

# For the last scrape of the hour.
READ_AFTER: Final = timedelta(minutes=5)
TRIED_FOR: Final = timedelta(hours=24)
_HOURS_PER_RUN: Final = 6


def read_due() -> list[datetime]:
    """Return the hours that were read. Repeated and concurrent runs add nothing."""
    read = []
    for cluster in Cluster.objects.exclude(prometheus_url=""):
        for hour in _due(cluster, clock.now()):
            of_hour = _ask(cluster, hour)
            if of_hour is None:
                break
            if _write(cluster, hour, of_hour):
                read.append(hour)
    return read


def _due(cluster: Cluster, now: datetime) -> list[datetime]:
    """Return the hours that are due, oldest first."""
    last = hour_of(now - READ_AFTER)
    first = max(last - TRIED_FOR, hour_of(cluster.created_at))
    done = set(
        EnergyReading.objects.filter(cluster=cluster, hour__gte=first).values_list(
            "hour", flat=True
        )
    )
    hours = [first + HOUR * n for n in range((last - first) // HOUR)]
    return [hour for hour in hours if hour not in done][:_HOURS_PER_RUN]


def _ask(cluster: Cluster, hour: datetime) -> Mapping[tuple[str, str], PodEnergy] | None:
    """Query the energy of pods in an hour. None if it is unknown this time. Empty without dcgm-exporter."""
    results = prometheus.query(cluster_id=cluster.pk, queries=energy.queries(hour + HOUR))
    samples = []
    for result in results:
        problem = result.message if isinstance(result, PrometheusError) else ""
        if isinstance(result, PrometheusError) or result.warnings:
            logger.info("energy: %s at %s not read: %s", cluster.name, hour, problem or "warnings")
            return None
        samples.append(result.samples)
    return energy.by_pod(*samples)


def _write(cluster: Cluster, hour: datetime, found: Mapping[tuple[str, str], PodEnergy]) -> bool:
    """Write the energy of an hour. Returns False if another worker did so first."""
    rows = _rows(cluster, hour, found)
    try:
        with transaction.atomic():
            EnergyReading.objects.create(cluster=cluster, hour=hour, read_at=clock.now())
            WorkloadHour.objects.bulk_create(
                rows,
                batch_size=1000,
                update_conflicts=True,
                unique_fields=["workload", "start"],
                update_fields=["energy_mj", "energy_ms"],
            )
            if rows and _is_summed_up(hour):
                days.forget(start=hour)
    except IntegrityError:
        return False
    return True


def _rows(
    cluster: Cluster, hour: datetime, found: Mapping[tuple[str, str], PodEnergy]
) -> list[WorkloadHour]:
    """Return the rows of workloads with the measured energy. Pods that are not the portal's have none."""
    existed = Q(gone_at=None) | Q(gone_at__gt=hour)
    pods = Pod.objects.filter(
        existed,
        cluster=cluster,
        workload__isnull=False,
        created_at__lt=hour + HOUR,
        namespace__in={namespace for namespace, _ in found},
    )
    sums: dict[int, list[int]] = {}
    for namespace, name, workload_id in set(pods.values_list("namespace", "name", "workload_id")):
        measured = found.get((namespace, name))
        if measured is not None and workload_id is not None:
            of_workload = sums.setdefault(workload_id, [0, 0])
            of_workload[0] += measured.energy_mj
            of_workload[1] += measured.covered_ms
    return [
        WorkloadHour(workload_id=pk, start=hour, energy_mj=millijoules, energy_ms=covered)
        for pk, (millijoules, covered) in sums.items()
    ]


def _is_summed_up(hour: datetime) -> bool:
    summed = SummedDay.objects.filter(day=hour.date())
    return summed.filter(Q(until=None) | Q(until__gt=hour)).exists()
