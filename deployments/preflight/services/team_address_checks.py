"""Check that a name of a model leads to one deployment at the team's address."""

from __future__ import annotations

from typing import Final

from django.db.models import Q, QuerySet

from deployments.manifests.domain import http_route
from deployments.models import Deployment, Revision
from deployments.preflight.domain.checks import Check
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

NAME: Final = "Team address"


def check(
    *, spec: ServingSpec, model: str, team_id: int, cluster_id: int, deployment_id: int
) -> list[Check]:
    """`deployment_id` is 0 for a new deployment. Empty where it does not serve at the team's address."""
    names = set(http_route.team_models_of(spec, model))
    if not names:
        return []
    for other in _others(team_id, cluster_id).exclude(pk=deployment_id):
        taken = sorted(names & _names_of(other))
        if taken:
            detail = f"Requests for {taken[0]} at the team's address go to {other} already."
            fix = f"Turn network.team_address off here, or request a canary on {other}."
            return [Check(NAME, ok=False, detail=detail, fix=fix)]
    detail = f"Requests for {' or '.join(sorted(names))} lead here."
    return [Check(NAME, ok=True, detail=detail)]


def _others(team_id: int, cluster_id: int) -> QuerySet[Deployment]:
    serves = Q(stable_revision__spec__network__team_address=True)
    serves |= Q(candidate_revision__spec__network__team_address=True)
    rows = Deployment.objects.filter(serves, team=team_id, cluster=cluster_id, is_retired=False)
    related = ("stable_revision", "candidate_revision")
    models = (f"{revision}__version__model" for revision in related)
    return rows.select_related("team", *models).order_by("name")


def _names_of(deployment: Deployment) -> set[str]:
    revisions = (deployment.stable_revision, deployment.candidate_revision)
    return {name for revision in revisions if revision is not None for name in _names(revision)}


def _names(revision: Revision) -> tuple[str, ...]:
    spec = serving_spec.stored(revision.spec)
    return http_route.team_models_of(spec, revision.version.model.name)
