"""The deployments that serve at the team's address, and the models that lead to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from deployments.manifests.domain import http_route
from deployments.manifests.domain.access.team_script import RoutedDeployment
from deployments.models import Deployment, Revision
from deployments.spec.domain import serving_spec


@dataclass(frozen=True, slots=True)
class Members:
    """The deployments that serve at a team's address on one cluster, sorted by name. `unready` may never have
    been pushed.
    """

    all: Sequence[RoutedDeployment]
    unready: Sequence[Deployment]


def list_members(*, team_id: int, cluster_id: int) -> Members:
    rows = list(_serving(team_id, cluster_id))
    members = [RoutedDeployment(row.name, _models_of(row)) for row in rows]
    return Members(members, [row for row in rows if row.first_ready_at is None])


def ever(pks: Collection[int]) -> set[int]:
    """Return deployments with a revision that serves there, served there, or was to."""
    rows = Revision.objects.filter(deployment__in=pks, spec__network__team_address=True)
    return set(rows.values_list("deployment", flat=True))


def serves_there(deployment: Deployment) -> bool:
    """Return whether the deployment serves at the team's address, by its row alone. It needs the stable
    revision.
    """
    stable = deployment.stable_revision
    is_there = stable is not None and stable.spec.get("network", {}).get("team_address")
    return bool(is_there) and not (deployment.is_retiring or deployment.is_stopped)


def _serving(team_id: int, cluster_id: int) -> QuerySet[Deployment]:
    rows = Deployment.objects.filter(
        team=team_id,
        cluster=cluster_id,
        is_retiring=False,
        is_retired=False,
        is_stopped=False,
        stable_revision__spec__network__team_address=True,
    )
    return rows.select_related("team", "cluster", "stable_revision__version__model").order_by(
        "name"
    )


def _models_of(row: Deployment) -> tuple[str, ...]:
    stable = row.stable_revision
    if stable is None:
        return ()
    return http_route.team_models_of(
        serving_spec.read_stored(stable.spec), stable.version.model.name
    )
