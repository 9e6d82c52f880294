"""Eight days of traffic of a deployment, and what the sweep makes of the hours after it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from deployments.health.services import watch
from deployments.models import Deployment, DeploymentHealth
from fleet.gpus.domain.intervals import hour_of
from fleet.models import Workload, WorkloadHour, WorkloadMinute
from tests.deployments.world import World

HOUR = timedelta(hours=1)


def record_week(
    world: World,
    deployment: Deployment,
    *,
    requests: Callable[[datetime], int] = lambda _: 3600,
    days: int = 8,
) -> None:
    """Hours until now, of requests that take 10 ms each, 1% failing."""
    workload = Workload.objects.get(name=f"{deployment.name}-r1")
    end = hour_of(world.clock.at)
    starts = [end - number * HOUR for number in range(24 * days, 0, -1)]
    WorkloadHour.objects.bulk_create(
        WorkloadHour(
            workload=workload,
            start=at,
            request_success=requests(at) - requests(at) // 100,
            request_failure=requests(at) // 100,
            request_duration_us=10_000 * (requests(at) - requests(at) // 100),
            observed_ms=3_600_000,
            gpu_busy_ms=1_200_000,
        )
        for at in starts
    )


def check(
    world: World,
    deployment: Deployment,
    *,
    seconds: float = 900,
    factor: float = 1.0,
    failing: float = 0.01,
    latency_us: int = 10_000,
) -> DeploymentHealth:
    """One more check after so many seconds, with the last hour as given: `factor` times 1 request a second."""
    world.clock.move(seconds)
    workload = Workload.objects.get(name=f"{deployment.name}-r1")
    start = world.clock.at.replace(second=0, microsecond=0)
    WorkloadMinute.objects.all().delete()
    per_minute = round(60 * factor)
    failed = round(60 * per_minute * failing)
    WorkloadMinute.objects.bulk_create(
        WorkloadMinute(
            workload=workload,
            start=start - timedelta(minutes=number),
            request_success=per_minute - failed // 60 - (number < failed % 60),
            request_failure=failed // 60 + (number < failed % 60),
            request_duration_us=latency_us * (per_minute - failed // 60 - (number < failed % 60)),
            observed_ms=60_000,
            gpu_busy_ms=20_000,
        )
        for number in range(60)
    )
    watch.sweep()
    return DeploymentHealth.objects.get(deployment=deployment)
