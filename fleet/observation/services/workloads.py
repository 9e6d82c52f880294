"""What others run on the fleet, registered so that fleet can meter and show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleet.models import Workload
from portal.accounts.models import Team
from portal.core import clock


def register(
    *,
    cluster_id: int,
    team: Team,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    triton_models: Sequence[str],
) -> int:
    """Create or refresh the workload; registering again changes nothing that is already so.

    `labels` say what it belongs to, in words: deployment, revision, model, version.
    """
    workload, _ = Workload.objects.update_or_create(
        cluster_id=cluster_id,
        namespace=namespace,
        name=name,
        defaults={
            "team": team,
            "labels": dict(labels),
            "triton_models": list(triton_models),
            "retired_at": None,
        },
        create_defaults={
            "team": team,
            "labels": dict(labels),
            "triton_models": list(triton_models),
            "created_at": clock.now(),
        },
    )
    return workload.pk


@dataclass(frozen=True, slots=True)
class Registration:
    """As the arguments of `register`."""

    team: Team
    namespace: str
    name: str
    labels: Mapping[str, str]
    triton_models: Sequence[str]


def register_many(*, cluster_id: int, registrations: Sequence[Registration]) -> None:
    """As `register`, all of one cluster in one statement."""
    at = clock.now()
    Workload.objects.bulk_create(
        [
            Workload(
                cluster_id=cluster_id,
                team=one.team,
                namespace=one.namespace,
                name=one.name,
                labels=dict(one.labels),
                triton_models=list(one.triton_models),
                created_at=at,
            )
            for one in registrations
        ],
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "name"],
        update_fields=["team", "labels", "triton_models", "retired_at"],
    )


def retire(*, cluster_id: int, namespace: str, name: str) -> None:
    """Its pods are metered until they are gone; history stays."""
    Workload.objects.filter(
        cluster_id=cluster_id, namespace=namespace, name=name, retired_at=None
    ).update(retired_at=clock.now())
