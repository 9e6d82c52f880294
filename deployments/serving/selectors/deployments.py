"""Read deployments: desired and observed state, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.manifests.domain import route_paths
from deployments.models import Deployment, Revision, Rollout
from deployments.plans.domain import baseline
from deployments.plans.selectors import plans
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.domain.queue_state import QueueState
from deployments.serving.selectors import revisions
from deployments.spec.domain import replicas, serving_spec
from deployments.states import ROLLOUT, DeploymentState, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound
from portal.core.single_row import find_one

OPEN_PHASES = tuple(phase for phase in RolloutPhase if ROLLOUT[phase])
_RELATED = ("team", "cluster", "created_by")
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
    """Return the address to which clients send requests. It is the same for every engine and revision."""
    return f"{deployment.cluster.gateway_url}/{deployment.namespace}/{deployment.name}"


def team_url_of(deployment: Deployment) -> str:
    """Return the base URL of the team's language models for clients of OpenAI's API. Empty where the stable
    revision does not serve there.
    """
    stable = deployment.stable_revision
    if stable is None or not serving_spec.read_stored(stable.spec).network.team_address:
        return ""
    return f"{deployment.cluster.gateway_url}{route_paths.team_prefix(deployment.namespace)}"


def list_visible_to(
    actor: Actor,
    *,
    team_slug: str | None = None,
    state: str = "",
    search: str = "",
    with_retired: bool = False,
) -> QuerySet[Deployment]:
    """Return deployments by team and name, with revisions, cluster and the open rollout (`open_rollouts`)
    loaded.
    """
    rows = _with_related(_visible_to(actor))
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if state:
        rows = rows.filter(state=state)
    if search:
        rows = rows.filter(
            Q(name__icontains=search) | Q(stable_revision__version__model__name__icontains=search)
        )
    return rows if with_retired else rows.filter(is_retired=False)


def list_with_traffic(actor: Actor, *, team_slug: str) -> list[Deployment]:
    """List the live deployments of the team, with only what statistics read of them."""
    visible = _visible_to(actor).filter(is_retired=False)
    rows = visible.filter(team__slug=team_slug).order_by()
    return list(
        rows.select_related("stable_revision", "candidate_revision", "baseline_revision")
        .prefetch_related(_open_rollouts())
        .only(
            *("cluster", "namespace", "name", "is_stopped", "candidate_weight"),
            *("candidate_mirror", "stable_revision__number", "candidate_revision__number"),
            "baseline_revision__number",
        )
    )


def list_newest_names(actor: Actor, *, team_slug: str, count: int) -> list[str]:
    """List the names of the team's newest live deployments, by name."""
    rows = _visible_to(actor).filter(team__slug=team_slug, is_retired=False)
    return sorted(rows.order_by("-pk").values_list("name", flat=True)[:count])


def get_visible(*, actor: Actor, team_slug: str, name: str) -> Deployment:
    """Return the live deployment of that name, else the one retired last. Raises NotFound."""
    named = _visible_to(actor).filter(team__slug=team_slug, name=name)
    deployment = named.select_related(*_RELATED).order_by("is_retired", "-id").first()
    if deployment is None:
        raise NotFound(f"Deployment {team_slug}/{name} does not exist, or you are not in its team.")
    return _loaded(deployment)


def get_visible_by_id(*, actor: Actor, deployment_id: int) -> Deployment:
    rows = _visible_to(actor).filter(pk=deployment_id)
    deployment = find_one(rows.select_related(*_RELATED))
    if deployment is None:
        raise NotFound(f"Deployment {deployment_id} does not exist, or you are not in its team.")
    return _loaded(deployment)


def revisions_of(deployment: Deployment) -> list[RevisionStatus]:
    """Return the stable revision, the candidate and its baseline, with requested and observed side by side."""
    weight = deployment.candidate_weight
    of_baseline = baseline.share_at(weight) if deployment.baseline_revision else 0
    weighted = [
        (deployment.stable_revision, "stable", 100 - weight - of_baseline),
        (deployment.candidate_revision, "candidate", weight),
        (deployment.baseline_revision, "baseline", of_baseline),
    ]
    return [
        status_of(deployment, revision, role, weight)
        for revision, role, weight in weighted
        if revision is not None
    ]


def queues_to_mention(deployment: Deployment) -> list[tuple[str, QueueState]]:
    """Return the workloads whose pods wait in a queue, or whose queue has no effect."""
    if deployment.is_stopped or deployment.is_retired:
        return []
    revisions = (
        deployment.stable_revision,
        deployment.candidate_revision,
        deployment.baseline_revision,
    )
    named = [
        (
            revision.workload_name,
            ObservedRevision.from_column(deployment.observed, revision.number).queue,
        )
        for revision in revisions
        if revision is not None
    ]
    return [
        (name, queue)
        for name, queue in named
        if queue is not None and (queue.is_waiting or queue.is_ignored)
    ]


def status_of(deployment: Deployment, revision: Revision, role: str, weight: int) -> RevisionStatus:
    is_stopped = deployment.is_stopped
    observed = ObservedRevision.from_column(deployment.observed, revision.number)
    if is_stopped:
        observed = _STOPPED
    return RevisionStatus(
        number=revision.number,
        role=role,
        version_id=revision.version_id,
        version_label=revision.version.label,
        workload_name=f"{deployment.name}-r{revision.number}",
        spec=replicas.apply_scale(
            serving_spec.read_stored(revision.spec), number=revision.number, scale=deployment.scale
        ),
        requested_weight=0 if is_stopped else weight,
        observed_weight=observed.weight,
        is_ready=observed.is_ready,
        reason=observed.reason,
        message=observed.message,
    )


def spec_of_stable(deployment: Deployment) -> serving_spec.ServingSpec | None:
    """Return the stable spec with the replicas that were approved last."""
    stable = deployment.stable_revision
    return None if stable is None else revisions_of(deployment)[0].spec


def access_of(deployment: Deployment) -> AccessKind:
    """Return who gets answers at the address. The stable revision decides."""
    spec = spec_of_stable(deployment)
    return catalogue.UNCHECKED if spec is None else spec.network.access_kind


def history_of(deployment: Deployment) -> list[Revision]:
    """List all revisions, newest first, without the baselines of rollouts."""
    rows = deployment.revisions.select_related("version__model__team", "created_by", "deployment")
    return list(rows.filter(baseline_of=None))


def is_current(deployment: Deployment) -> bool:
    """Whether the cluster was observed after the last change of the desired state."""
    return deployment.observed_generation == deployment.desired_generation


def is_routed(deployment: Deployment) -> bool:
    """Whether requests reach a revision: not before one was ready, nor while the deployment is stopped."""
    return deployment.first_ready_at is not None and not deployment.is_stopped


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
    """Read related rows, revisions by queries of their own: PostgreSQL plans one query with thirteen tables for
    longer than it takes to answer four, and joins all rows before it cuts a page from them.
    """
    complete = revisions.complete()
    return rows.select_related(*_RELATED).prefetch_related(
        Prefetch("stable_revision", queryset=complete),
        Prefetch("candidate_revision", queryset=complete),
        Prefetch("baseline_revision", queryset=complete),
        _open_rollouts(),
    )


def _loaded(deployment: Deployment) -> Deployment:
    """Load what `_with_related` loads, the revisions in one query."""
    revisions.load_onto(deployment)
    prefetch_related_objects([deployment], _open_rollouts())
    return deployment


def _visible_to(actor: Actor) -> QuerySet[Deployment]:
    return Deployment.objects.filter(team__in=policy.visible_teams(actor))


def _open_rollouts() -> Prefetch[str, QuerySet[Rollout], str]:
    rows = Rollout.objects.filter(phase__in=OPEN_PHASES)
    return Prefetch("rollouts", queryset=rows, to_attr="open_rollouts")
