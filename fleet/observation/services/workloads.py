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
    """The arguments of `register` for one workload."""

    team: Team
    namespace: str
    name: str
    labels: Mapping[str, str]
    triton_models: Sequence[str]
    metrics_port: int = TRITON_METRICS_PORT
    metrics_path: str = METRICS_PATH


def register_many(*, cluster_id: int, registrations: Sequence[Registration]) -> None:
    """As `register`, for many workloads of one cluster in one statement."""
    at = clock.now()
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
                created_at=at,
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


def retire(*, cluster_id: int, namespace: str, name: str) -> None:
    """Retire the workload. Its remaining pods are metered until they end; history stays."""
    Workload.objects.filter(
        cluster_id=cluster_id, namespace=namespace, name=name, retired_at=None
    ).update(retired_at=clock.now())
