"""GPUs committed by a team: desired now plus approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Q, QuerySet

from deployments.models import ChangeRequest, Deployment
from deployments.spec.domain import replicas, serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeState
from portal.accounts.models import Team

_COUNTED = (ChangeState.APPROVED, ChangeState.APPLYING)
_REVISION_FIELDS = ("stable_revision", "candidate_revision")


def committed_gpus(
    team: Team, *, without_change_id: int | None = None, without_deployment_id: int | None = None
) -> int:
    """GPUs at full scale-out: stable and candidate revisions, and revisions of approved changes.

    A revision that an approved change scales counts at the larger of both sizes.
    """
    gpus_by_revision: dict[int, int] = {}
    live = _running(team, without_deployment_id)
    for revision_id, spec in _specs(live):
        gpus_by_revision[revision_id] = max(gpus_by_revision.get(revision_id, 0), spec.most_gpus)
    for revision_id, spec in _approved(team, without_change_id):
        gpus_by_revision[revision_id] = max(gpus_by_revision.get(revision_id, 0), spec.most_gpus)
    return sum(gpus_by_revision.values())


def list_running_specs(
    team: Team, *, without_deployment_id: int | None = None, only_deployment_id: int | None = None
) -> list[tuple[int, ServingSpec]]:
    """(cluster id, spec) of every revision that the team's deployments run now."""
    live = _running(team, without_deployment_id)
    if only_deployment_id is not None:
        live = live.filter(pk=only_deployment_id)
    clusters = dict(live.values_list("pk", "cluster_id"))
    return [(clusters[deployment_id], spec) for deployment_id, spec in _specs(live, by="pk")]


def _running(team: Team, without_id: int | None) -> QuerySet[Deployment]:
    rows = Deployment.objects.filter(
        team=team, is_retired=False, is_retiring=False, is_stopped=False
    )
    return rows if without_id is None else rows.exclude(pk=without_id)


def _specs(live: QuerySet[Deployment], *, by: str = "") -> Iterator[tuple[int, ServingSpec]]:
    """(id, spec) pairs. `by` is the field of the id; default: the revision."""
    for role in _REVISION_FIELDS:
        rows = live.exclude(**{role: None}).values_list(
            by or role, f"{role}__number", f"{role}__spec", "scale"
        )
        for pk, number, spec, scale in rows:
            yield pk, _scaled(number, spec, scale)


def _approved(team: Team, without_change_id: int | None) -> Iterator[tuple[int, ServingSpec]]:
    rows = ChangeRequest.objects.filter(
        Q(state__in=_COUNTED), deployment__team=team, deployment__is_retiring=False
    ).exclude(revision=None)
    if without_change_id is not None:
        rows = rows.exclude(pk=without_change_id)
    for pk, number, spec, requested, current in rows.values_list(
        "revision", "revision__number", "revision__spec", "scale", "deployment__scale"
    ):
        yield pk, _scaled(number, spec, requested or current)


def _scaled(number: int, spec: Mapping[str, Any], scale: Mapping[str, Any]) -> ServingSpec:
    return replicas.scaled(serving_spec.stored(spec), number=number, scale=scale)
