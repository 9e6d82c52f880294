"""Reading deployments: what is wanted, what is observed, and where they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from deployments.models import Deployment, DeploymentEvent, Revision, Rollout
from deployments.plans.domain import rollout_plan
from deployments.spec.domain import replicas, serving_spec
from deployments.states import ROLLOUT, DeploymentState, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound

OPEN_PHASES = tuple(phase for phase in RolloutPhase if ROLLOUT[phase])
_RELATED = (
    "team",
    "cluster",
    "created_by",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
    "stable_revision__deployment",
    "candidate_revision__deployment",
)


# What was seen before the stop is no word about now.
_STOPPED: Mapping[str, Any] = {"weight": None, "ready": False, "reason": "Stopped", "message": ""}


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    """One revision that the deployment wants: its share of the route and what the cluster says."""

    number: int
    role: str
    version_id: int
    version_label: str
    workload_name: str
    spec: serving_spec.ServingSpec
    requested_weight: int
    observed_weight: int | None
    is_ready: bool | None
    reason: str
    message: str


def url_of(deployment: Deployment) -> str:
    """Where clients send requests; the same for every engine and revision."""
    return f"{deployment.cluster.gateway_url}/{deployment.namespace}/{deployment.name}"


def list_visible_to(
    actor: Actor,
    *,
    team_slug: str | None = None,
    state: str = "",
    search: str = "",
    with_retired: bool = False,
) -> QuerySet[Deployment]:
    """By team and name, with revisions, cluster and the open rollout (`open_rollouts`) loaded."""
    rows = _with_related(Deployment.objects.filter(team__in=policy.visible_teams(actor)))
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if state:
        rows = rows.filter(state=state)
    if search:
        rows = rows.filter(
            Q(name__icontains=search) | Q(stable_revision__version__model__name__icontains=search)
        )
    return rows if with_retired else rows.filter(is_retired=False)


def get_visible(*, actor: Actor, team_slug: str, name: str) -> Deployment:
    """The live deployment of that name, else the one retired last. Raises NotFound for strangers."""
    rows = list_visible_to(actor, team_slug=team_slug, with_retired=True).filter(name=name)
    found = rows.order_by("is_retired", "-id").first()
    if found is None:
        raise NotFound(f"Deployment {team_slug}/{name} does not exist, or you are not in its team.")
    return found


def get_visible_by_id(*, actor: Actor, deployment_id: int) -> Deployment:
    found = list_visible_to(actor, with_retired=True).filter(pk=deployment_id).first()
    if found is None:
        raise NotFound(f"Deployment {deployment_id} does not exist, or you are not in its team.")
    return found


def revisions_of(deployment: Deployment) -> list[RevisionStatus]:
    """The stable revision, then the candidate, with requested and observed side by side."""
    wanted = [
        (deployment.stable_revision, "stable", 100 - deployment.candidate_weight),
        (deployment.candidate_revision, "candidate", deployment.candidate_weight),
    ]
    return [
        status_of(deployment, revision, role, weight)
        for revision, role, weight in wanted
        if revision is not None
    ]


def status_of(deployment: Deployment, revision: Revision, role: str, weight: int) -> RevisionStatus:
    is_stopped = deployment.is_stopped
    seen = _STOPPED if is_stopped else deployment.observed.get(f"r{revision.number}", {})
    return RevisionStatus(
        number=revision.number,
        role=role,
        version_id=revision.version_id,
        version_label=revision.version.label,
        workload_name=f"{deployment.name}-r{revision.number}",
        spec=replicas.scaled(
            serving_spec.stored(revision.spec), number=revision.number, scale=deployment.scale
        ),
        requested_weight=0 if is_stopped else weight,
        observed_weight=seen.get("weight"),
        is_ready=seen.get("ready"),
        reason=seen.get("reason", ""),
        message=seen.get("message", ""),
    )


def spec_of_stable(deployment: Deployment) -> serving_spec.ServingSpec | None:
    """As it is wanted now, with the replicas that were approved last."""
    stable = deployment.stable_revision
    return None if stable is None else revisions_of(deployment)[0].spec


def history_of(deployment: Deployment) -> list[Revision]:
    """All revisions, newest first."""
    rows = deployment.revisions.select_related("version__model__team", "created_by", "deployment")
    return list(rows)


def events_of(deployment: Deployment) -> QuerySet[DeploymentEvent]:
    """The timeline, newest first."""
    return DeploymentEvent.objects.filter(deployment=deployment)


def is_current(deployment: Deployment) -> bool:
    """Whether the cluster has been seen doing what is wanted now."""
    return deployment.observed_generation == deployment.desired_generation


def is_stopping(deployment: Deployment) -> bool:
    """Whether it was stopped and the cluster has not been seen without it yet."""
    has_ended = deployment.state in (DeploymentState.STOPPED, DeploymentState.RETIRED)
    return deployment.is_stopped and not has_ended


def is_mirrored(deployment: Deployment) -> bool:
    """Whether the candidate saw copies only, so that what it did is nothing that users got."""
    opened: list[Rollout] = getattr(deployment, "open_rollouts", [])
    is_shadow = any(
        rollout_plan.is_shadow(rollout.plan)
        and rollout.stable_revision_id == deployment.stable_revision_id
        for rollout in opened
    )
    return deployment.candidate_mirror > 0 or (is_shadow and not deployment.candidate_weight)


def _with_related(rows: QuerySet[Deployment]) -> QuerySet[Deployment]:
    open_rollouts = Rollout.objects.filter(phase__in=OPEN_PHASES)
    return rows.select_related(*_RELATED).prefetch_related(
        Prefetch("rollouts", queryset=open_rollouts, to_attr="open_rollouts")
    )
