"""Workloads that other apps register, so that fleet can meter and show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fleet.models import Workload
from portal.accounts.models import Team
from portal.core import clock

TRITON_METRICS_PORT: Final = 8002
METRICS_PATH: Final = "/metrics"


def register(
    *,
    cluster_id: int,
    team: Team,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    triton_models: Sequence[str],
    metrics_port: int = TRITON_METRICS_PORT,
    metrics_path: str = METRICS_PATH,
    ends_at: datetime | None = None,
) -> int:
    """Create or update the workload; repeating it changes nothing.

    `labels` name its deployment, revision, model and version; `ends_at` is when it ends by itself.
    """
    workload, _ = Workload.objects.update_or_create(
        cluster_id=cluster_id,
        namespace=namespace,
        name=name,
        defaults={
            "team": team,
            "labels": dict(labels),
            "triton_models": list(triton_models),
            "metrics_port": metrics_port,
            "metrics_path": metrics_path,
            "ends_at": ends_at,
            "retired_at": None,
        },
        create_defaults={
            "team": team,
            "labels": dict(labels),
            "triton_models": list(triton_models),
            "metrics_port": metrics_port,
            "metrics_path": metrics_path,
            "ends_at": ends_at,
            "created_at": clock.now(),
        },
    )
    return workload.pk


@dataclass(frozen=True, slots=True)
class Registration:
    """The arguments of `register` for one workload. `since` is when the revision that it stands for was made: a
    workload that was registered before that stood for another one of the same name.
    """

    team: Team
    namespace: str
    name: str
    labels: Mapping[str, str]
    triton_models: Sequence[str]
    since: datetime
    metrics_port: int = TRITON_METRICS_PORT
    metrics_path: str = METRICS_PATH


def register_many(*, cluster_id: int, registrations: Sequence[Registration]) -> None:
    """Register many workloads of one cluster in two statements, as `register` does. Measurements of another
    revision that had the same name before are dropped.
    """
    at = clock.now()
    _take_over(cluster_id, registrations, at)
    Workload.objects.bulk_create(
        [
            Workload(
                cluster_id=cluster_id,
                team=registration.team,
                namespace=registration.namespace,
                name=registration.name,
                labels=dict(registration.labels),
                triton_models=list(registration.triton_models),
                metrics_port=registration.metrics_port,
                metrics_path=registration.metrics_path,
                created_at=max(at, registration.since),
            )
            for registration in registrations
        ],
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "name"],
        update_fields=[
            "team",
            "labels",
            "triton_models",
            "metrics_port",
            "metrics_path",
            "retired_at",
        ],
    )


def _take_over(cluster_id: int, registrations: Sequence[Registration], at: datetime) -> None:
    since = {(one.namespace, one.name): one.since for one in registrations}
    rows = Workload.objects.filter(
        cluster_id=cluster_id,
        namespace__in={namespace for namespace, _ in since},
        name__in={name for _, name in since},
        created_at__lt=max(since.values()),
    ).values_list("pk", "namespace", "name", "created_at")
    for pk, namespace, name, created_at in rows:
        began = since.get((namespace, name))
        if began is not None and created_at < began:
            # The clock of the process that made the revision may be ahead of this one.
            Workload.objects.filter(pk=pk).update(
                created_at=max(at, began), gpu_memory_peak_mib=None
            )


def retire(*, cluster_id: int, namespace: str, name: str) -> None:
    """Retire the workload. Its remaining pods are metered until they end; history stays."""
    Workload.objects.filter(
        cluster_id=cluster_id, namespace=namespace, name=name, retired_at=None
    ).update(retired_at=clock.now())
