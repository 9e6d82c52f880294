"""A deployment with a target, and minutes of traffic of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from deployments.models import Deployment, ServiceTarget
from deployments.states import TargetMetric
from deployments.targets.selectors import targets as target_views
from deployments.targets.selectors.targets import TargetSummary
from deployments.targets.services import count, targets
from deployments.targets.services.targets import TargetDraft
from fleet.gpus.domain.intervals import minute_of
from fleet.models import MetricSample, Pod, Workload, WorkloadMinute
from tests.deployments.world import World


def set_target(
    world: World,
    deployment: Deployment,
    metric: TargetMetric = TargetMetric.AVAILABILITY,
    *,
    objective: str = "99.9",
    days: int = 30,
    ms: int | None = None,
) -> ServiceTarget:
    draft = TargetDraft(metric, Decimal(objective), days, ms)
    return targets.set_target(actor=world.member, deployment_id=deployment.pk, draft=draft)


def record(
    world: World,
    deployment: Deployment,
    ago: Iterable[int],
    *,
    good: int = 100,
    bad: int = 0,
    revision: int = 1,
) -> None:
    """Requests in the minutes so many minutes ago; 0 is the running one."""
    workload = Workload.objects.get(name=f"{deployment.name}-r{revision}")
    now = minute_of(world.clock.at)
    WorkloadMinute.objects.bulk_create(
        [
            WorkloadMinute(
                workload=workload,
                start=now - timedelta(minutes=number),
                request_success=good,
                request_failure=bad,
                observed_ms=60_000,
            )
            for number in ago
        ],
        update_conflicts=True,
        unique_fields=["workload", "start"],
        update_fields=["request_success", "request_failure", "observed_ms"],
    )


def pod_of(world: World, deployment: Deployment) -> Pod:
    return Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=Workload.objects.get(name=f"{deployment.name}-r1"),
        namespace=deployment.namespace,
        name=f"{deployment.name}-r1-abc",
        uid="u1",
        phase="Running",
        created_at=world.clock.at,
    )


def sample(pod: Pod, at: datetime, *, requests: int, **more: object) -> None:
    MetricSample.objects.create(pod=pod, at=at, request_success=requests, **more)


def counted(world: World, deployment: Deployment) -> TargetSummary:
    """The only target after the next sweep."""
    world.clock.move(0.001)
    ServiceTarget.objects.update(next_check_at=world.clock.at)
    assert count.sweep() == 1
    (view,) = target_views.list_of(deployment)
    return view
