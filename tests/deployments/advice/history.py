"""Weeks of sealed hours and readings of a deployment, as metering and telemetry would have written them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from deployments.models import ChangeRequest, Deployment
from fleet.models import Cluster, LedgerKind, LedgerRow, SealedHour, Workload, WorkloadHour
from tests.deployments.world import World

HOUR_MS = 3_600_000
PRICE = Decimal("1.006")


def age(world: World, deployment: Deployment, *, days: int = 21) -> None:
    """It last changed so many days ago."""
    at = world.clock.at - timedelta(days=days)
    Deployment.objects.filter(pk=deployment.pk).update(created_at=at)
    ChangeRequest.objects.filter(deployment=deployment).update(finished_at=at)


def write(
    world: World,
    deployment: Deployment,
    *,
    replicas: int = 1,
    hours: int = 14 * 24,
    requests: Callable[[datetime], int] = lambda _: 1000,
    busy: float = 0.1,
    is_observed: Callable[[datetime], bool] = lambda _: True,
    price: Decimal = PRICE,
    revision: int = 1,
    counters: Mapping[str, int] | None = None,
    gpu_ms: int = HOUR_MS,
) -> None:
    """`busy` is the GPU utilisation of each replica in the hours that have requests; `counters` are those of each hour,
    `gpu_ms` is what each replica held a GPU in it.
    """
    end = world.clock.at.replace(minute=0, second=0, microsecond=0)
    cluster = Cluster.objects.get(pk=world.cluster_id)
    labels = {"deployment": deployment.name, "revision": str(revision)}
    workload, _ = Workload.objects.get_or_create(
        cluster=cluster,
        namespace=deployment.namespace,
        name=f"{deployment.name}-r{revision}",
        defaults={"team": deployment.team, "labels": labels, "created_at": end},
    )
    Workload.objects.filter(pk=workload.pk).update(labels=labels)
    starts = [end - timedelta(hours=number) for number in range(hours, 0, -1)]
    SealedHour.objects.bulk_create(
        [SealedHour(cluster=cluster, hour=at, sealed_at=at) for at in starts], ignore_conflicts=True
    )
    LedgerRow.objects.bulk_create(
        LedgerRow(
            hour=at,
            cluster_name=cluster.name,
            node_uid=f"node-{number}-{deployment.name}",
            node_name=f"node-{number}",
            instance_type="g5.xlarge",
            kind=LedgerKind.ALLOCATED,
            team_slug=deployment.team.slug,
            namespace=deployment.namespace,
            workload_name=workload.name,
            workload_labels=labels,
            gpu_milliseconds=gpu_ms,
            cost_amount=price,
            usd_per_hour_amount=price or None,
            sealed_at=at,
        )
        for at in starts
        for number in range(replicas)
    )
    WorkloadHour.objects.bulk_create(
        WorkloadHour(
            workload=workload,
            start=at,
            request_success=requests(at),
            observed_ms=HOUR_MS * replicas if is_observed(at) else 0,
            gpu_busy_ms=int(HOUR_MS * replicas * busy) if requests(at) else 0,
            gpu_busy_source="triton",
            **(counters or {}),
        )
        for at in starts
        if is_observed(at)
    )
