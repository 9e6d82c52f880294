"""The deployments table: search, filters and order."""

from __future__ import annotations

from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from deployments.models import Deployment, DeploymentEvent, Revision
from deployments.serving.selectors import deployments
from portal.accounts.policy import Actor

SORTS: Final = {
    "name": ("name", "pk"),
    "-name": ("-name", "-pk"),
    "state": ("state", "name"),
    "-state": ("-state", "name"),
    "changed": ("changed_at", "pk"),
    "-changed": ("-changed_at", "-pk"),
}


def list_deployments(
    *,
    actor: Actor,
    team_slug: str | None,
    order: str,
    q: str = "",
    state: str = "",
    cluster: str = "",
) -> QuerySet[Deployment]:
    """Live deployments the actor may see. `q` matches their names and the names of their models."""
    rows = visible_rows(actor=actor, team_slug=team_slug)
    if q:
        serves = Revision.objects.filter(
            deployment=OuterRef("pk"), version__model__name__icontains=q
        )
        rows = rows.filter(Q(name__icontains=q) | Q(Exists(serves)))
    if state:
        rows = rows.filter(state=state)
    if cluster:
        rows = rows.filter(cluster__name=cluster)
    return rows.order_by(*SORTS[order])


def visible_rows(*, actor: Actor, team_slug: str | None) -> QuerySet[Deployment]:
    """Deployments with everything a row shows. `changed_at` is its newest event's time."""
    newest = DeploymentEvent.objects.filter(deployment=OuterRef("pk")).order_by("-id")
    changed_at = Coalesce(Subquery(newest.values("at")[:1]), "created_at")
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return rows.annotate(changed_at=changed_at)
