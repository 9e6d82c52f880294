"""Read deployments: desired and observed state, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Prefetch, Q, QuerySet

from deployments.models import Deployment, DeploymentEvent, Revision, Rollout
from deployments.plans.selectors import plans
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.spec.domain import replicas, serving_spec
from deployments.states import ROLLOUT, DeploymentState, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core import single_rows
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


# What was observed before the stop says nothing about now.
_STOPPED = ObservedRevision(is_ready=False, reason="Stopped")


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    """A desired revision: its requested and observed traffic weight, and what the cluster reports."""

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
    """Deployments by team and name, with revisions, cluster and the open rollout (`open_rollouts`)
    loaded.
    """
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
    """The live deployment of that name, else the one retired last. Raises NotFound."""
    rows = list_visible_to(actor, team_slug=team_slug, with_retired=True).filter(name=name)
    deployment = rows.order_by("is_retired", "-id").first()
    if deployment is None:
        raise NotFound(f"Deployment {team_slug}/{name} does not exist, or you are not in its team.")
    return deployment


def get_visible_by_id(*, actor: Actor, deployment_id: int) -> Deployment:
    rows = list_visible_to(actor, with_retired=True)
    deployment = single_rows.find(rows.filter(pk=deployment_id))
    if deployment is None:
        raise NotFound(f"Deployment {deployment_id} does not exist, or you are not in its team.")
    return deployment


def revisions_of(deployment: Deployment) -> list[RevisionStatus]:
    """The stable revision, then the candidate, with requested and observed side by side."""
    weighted = [
        (deployment.stable_revision, "stable", 100 - deployment.candidate_weight),
        (deployment.candidate_revision, "candidate", deployment.candidate_weight),
    ]
    return [
        status_of(deployment, revision, role, weight)
        for revision, role, weight in weighted
        if revision is not None
    ]


def status_of(deployment: Deployment, revision: Revision, role: str, weight: int) -> RevisionStatus:
    is_stopped = deployment.is_stopped
    observed = ObservedRevision.of(deployment.observed, revision.number)
    if is_stopped:
        observed = _STOPPED
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
        observed_weight=observed.weight,
        is_ready=observed.is_ready,
        reason=observed.reason,
        message=observed.message,
    )


def spec_of_stable(deployment: Deployment) -> serving_spec.ServingSpec | None:
    """The stable spec with the replicas that were approved last."""
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
    """Whether the cluster was observed after the last change of the desired state."""
    return deployment.observed_generation == deployment.desired_generation


def is_stopping(deployment: Deployment) -> bool:
    """Whether it was stopped and its objects have not been observed to be gone yet."""
    has_ended = deployment.state in (DeploymentState.STOPPED, DeploymentState.RETIRED)
    return deployment.is_stopped and not has_ended


def is_mirrored(deployment: Deployment) -> bool:
    """Whether the candidate gets mirrored requests only, so that no user sees its responses."""
    open_rollouts: list[Rollout] = getattr(deployment, "open_rollouts", [])
    is_shadow = any(
        plans.plan_of(rollout).is_shadow
        and rollout.stable_revision_id == deployment.stable_revision_id
        for rollout in open_rollouts
    )
    return deployment.candidate_mirror > 0 or (is_shadow and not deployment.candidate_weight)


def _with_related(rows: QuerySet[Deployment]) -> QuerySet[Deployment]:
    open_rollouts = Rollout.objects.filter(phase__in=OPEN_PHASES)
    return rows.select_related(*_RELATED).prefetch_related(
        Prefetch("rollouts", queryset=open_rollouts, to_attr="open_rollouts")
    )
