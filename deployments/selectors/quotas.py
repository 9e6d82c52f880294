"""GPUs that a team has promised to itself: what is wanted now plus what is approved."""

from __future__ import annotations

from django.db.models import Q

from deployments.domain import specs
from deployments.domain.states import ChangeState
from deployments.models import ChangeRequest, Deployment, Revision
from portal.accounts.models import Team

_COUNTED = (ChangeState.APPROVED, ChangeState.APPLYING)


def committed_gpus(team: Team, *, without_change_id: int | None = None) -> int:
    """At full scale-out: stable and candidate revisions, and revisions of approved changes."""
    live = Deployment.objects.filter(team=team, is_retired=False, is_retiring=False)
    wanted: set[int | None] = set(live.values_list("stable_revision_id", flat=True))
    wanted |= set(live.values_list("candidate_revision_id", flat=True))
    changes = ChangeRequest.objects.filter(
        Q(state__in=_COUNTED), deployment__team=team, deployment__is_retiring=False
    )
    if without_change_id is not None:
        changes = changes.exclude(pk=without_change_id)
    wanted |= set(changes.values_list("revision_id", flat=True))
    known = [pk for pk in wanted if pk is not None]
    rows = Revision.objects.filter(pk__in=known).values_list("spec", flat=True)
    return sum(specs.from_json(spec).most_gpus for spec in rows)


def least_revisions_of(team: Team) -> list[tuple[int, specs.ServingSpec]]:
    """(cluster id, spec) of every revision that the team wants running now."""
    live = Deployment.objects.filter(team=team, is_retired=False, is_retiring=False)
    pairs = live.values_list("cluster_id", "stable_revision__spec", "candidate_revision__spec")
    return [
        (cluster_id, specs.from_json(spec))
        for cluster_id, *found in pairs
        for spec in found
        if spec is not None
    ]
