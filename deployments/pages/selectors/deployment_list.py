"""The deployments table: search, filters and order."""

from __future__ import annotations

from typing import Final

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from deployments.models import Deployment, DeploymentEvent, Revision, Rollout
from deployments.serving.selectors import deployments
from portal.accounts import policy
from portal.accounts.policy import Actor

_ROLES: Final = ("stable", "candidate", "baseline")
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
    """List live deployments the actor may see. `q` matches their names and the names of their models."""
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
    """Return deployments with everything a row shows. `changed_at` is its newest event's time."""
    rows = Deployment.objects.filter(team__in=policy.visible_teams(actor), is_retired=False)
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    newest = DeploymentEvent.objects.filter(deployment=OuterRef("pk")).order_by("-id")
    changed_at = Coalesce(Subquery(newest.values("at")[:1]), "created_at")
    return _with_what_rows_show(rows.annotate(changed_at=changed_at))


def _with_what_rows_show(rows: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """Read what rows show. Pages ask for it every few seconds: of each table only the columns that they read."""
    labels = Revision.objects.select_related("version__model").order_by()
    labels = labels.only("number", "version__number", "version__model__name")
    open_rollouts = Rollout.objects.filter(phase__in=deployments.OPEN_PHASES)
    of_rollouts = ("deployment", "phase", "plan", "steps", "stable_revision")
    return (
        rows.select_related("team")
        .only(
            *("name", "namespace", "cluster", "state", "state_reason", "is_stopped"),
            *("candidate_weight", "candidate_mirror", "first_ready_at", "created_at", "team__slug"),
            *(f"{role}_revision" for role in _ROLES),
        )
        .prefetch_related(
            *(Prefetch(f"{role}_revision", queryset=labels) for role in _ROLES),
            Prefetch(
                "rollouts", queryset=open_rollouts.only(*of_rollouts), to_attr="open_rollouts"
            ),
        )
    )
