"""Check that a name of a model leads to one deployment at the team's address."""

from __future__ import annotations

from typing import Final

from django.db.models import F, Q, QuerySet

from deployments.manifests.domain import http_route
from deployments.models import ChangeRequest, Revision
from deployments.preflight.domain.checks import Check
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeState

NAME: Final = "Team address"
_APPROVED: Final = (ChangeState.APPROVED, ChangeState.APPLYING)


def check(
    *, spec: ServingSpec, model: str, team_id: int, cluster_id: int, deployment_id: int
) -> list[Check]:
    """Check the names at the team's address. `deployment_id` has no row for a new deployment. Empty where it
    does not serve there.
    """
    names = set(http_route.team_models_of(spec, model))
    if not names:
        return []
    for other in _others(team_id, cluster_id).exclude(deployment=deployment_id):
        if taken := sorted(names & set(_names_of(other))):
            detail = (
                f"Requests for {taken[0]} at the team's address already go to {other.deployment}."
            )
            fix = f"Turn network.team_address off here, or request a canary on {other.deployment}."
            return [Check(NAME, ok=False, detail=detail, fix=fix)]
    detail = f"Requests for {' or '.join(sorted(names))} lead here."
    return [Check(NAME, ok=True, detail=detail)]


def _others(team_id: int, cluster_id: int) -> QuerySet[Revision]:
    """Return the revisions that serve there, or will: of two requests the one that was approved first has the
    name.
    """
    coming = ChangeRequest.objects.filter(state__in=_APPROVED).values("revision")
    serves = Q(pk=F("deployment__stable_revision")) | Q(pk=F("deployment__candidate_revision"))
    rows = Revision.objects.filter(
        serves | Q(pk__in=coming),
        deployment__team=team_id,
        deployment__cluster=cluster_id,
        deployment__is_retired=False,
        spec__network__team_address=True,
    )
    return rows.select_related("deployment__team", "version__model").order_by("deployment__name")


def _names_of(revision: Revision) -> tuple[str, ...]:
    spec = serving_spec.read_stored(revision.spec)
    return http_route.team_models_of(spec, revision.version.model.name)
