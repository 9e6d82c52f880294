"""GPUs that a team has promised to itself: what is wanted now plus what is approved."""

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
_ROLES = ("stable_revision", "candidate_revision")


def committed_gpus(
    team: Team, *, without_change_id: int | None = None, without_deployment_id: int | None = None
) -> int:
    """At full scale-out: stable and candidate revisions, and revisions of approved changes.

    A revision that an approved change scales counts at the larger of both sizes.
    """
    wanted: dict[int, int] = {}
    live = _running(team, without_deployment_id)
    for revision_id, spec in _revisions_of(live):
        wanted[revision_id] = max(wanted.get(revision_id, 0), spec.most_gpus)
    for revision_id, spec in _approved(team, without_change_id):
        wanted[revision_id] = max(wanted.get(revision_id, 0), spec.most_gpus)
    return sum(wanted.values())


def least_revisions_of(
    team: Team, *, without_deployment_id: int | None = None, only_deployment_id: int | None = None
) -> list[tuple[int, ServingSpec]]:
    """(cluster id, spec) of every revision that the team wants running now."""
    live = _running(team, without_deployment_id)
    if only_deployment_id is not None:
        live = live.filter(pk=only_deployment_id)
    clusters = dict(live.values_list("pk", "cluster_id"))
    return [(clusters[deployment_id], spec) for deployment_id, spec in _revisions_of(live, by="pk")]


def _running(team: Team, without_id: int | None) -> QuerySet[Deployment]:
    rows = Deployment.objects.filter(
        team=team, is_retired=False, is_retiring=False, is_stopped=False
    )
    return rows if without_id is None else rows.exclude(pk=without_id)


def _revisions_of(live: QuerySet[Deployment], *, by: str = "") -> Iterator[tuple[int, ServingSpec]]:
    """`by` names the id that each spec comes with; the revision's own when left out."""
    for role in _ROLES:
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
    for pk, number, spec, asked, kept in rows.values_list(
        "revision", "revision__number", "revision__spec", "scale", "deployment__scale"
    ):
        yield pk, _scaled(number, spec, asked or kept)


def _scaled(number: int, spec: Mapping[str, Any], scale: Mapping[str, Any]) -> ServingSpec:
    return replicas.scaled(serving_spec.stored(spec), number=number, scale=scale)
