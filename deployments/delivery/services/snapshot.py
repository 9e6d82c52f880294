"""The observations of one reconcile pass about a deployment, next to what was recorded before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from deployments.delivery.domain import health
from deployments.delivery.domain.progress import WorkloadProgress
from deployments.delivery.services import deadlines
from deployments.delivery.services.observe import DeploymentObservation
from deployments.delivery.services.reconcile_state import DriftReport, ReconcileState
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.domain.queue_state import QUEUED, QueueState
from deployments.states import ChangeKind


@dataclass(frozen=True, slots=True)
class DeploymentSnapshot:
    """The observations of a pass. `refusals` say why the cluster rejected a revision, by its number;
    `route_refusal` why it rejected the route.
    """

    rendered: RenderedDeployment
    observation: DeploymentObservation
    refusals: Mapping[int, str]
    drift_report: DriftReport
    route_refusal: str = ""
    # Of the callers' policies; the route does not wait for them.
    policy_refusal: str = ""

    @classmethod
    def from_state(cls, state: ReconcileState) -> DeploymentSnapshot:
        refused = state.policy_refusal
        return cls(
            state.rendered,
            state.observation,
            state.refusals,
            state.drift_report(),
            state.route_refusal,
            "" if refused is None else refused.description,
        )

    @property
    def deployment(self) -> Deployment:
        return self.rendered.deployment


@dataclass(frozen=True, slots=True)
class RevisionSnapshot:
    """A revision as observed now, and as recorded before."""

    revision: Revision
    progress: WorkloadProgress
    weight: int | None
    mirror: int | None
    before: ObservedRevision
    queue: QueueState | None = None

    @property
    def is_queued(self) -> bool:
        """Whether it is not ready because pods wait in a queue."""
        return self.progress.reason == QUEUED

    def to_observed(self, at: datetime) -> ObservedRevision:
        is_unchanged = self.before.is_ready == self.progress.is_ready
        return ObservedRevision(
            stage=self.progress.stage,
            reason=self.progress.reason,
            message=self.progress.message,
            is_failing=self.progress.is_failing,
            is_ready=self.progress.is_ready,
            weight=self.weight,
            queue=self.queue,
            since=(self.before.since if is_unchanged else None) or at,
        )


def observe_revision(
    snapshot: DeploymentSnapshot, revision: Revision | None
) -> RevisionSnapshot | None:
    """Return the observed revision. None without a revision, and for a stopped deployment."""
    deployment, observation = snapshot.deployment, snapshot.observation
    if revision is None or deployment.is_stopped:
        return None
    progress = observation.progress_of(revision, snapshot.rendered.spec_of(revision))
    if revision.number in snapshot.refusals:
        refusal = snapshot.refusals[revision.number]
        progress = WorkloadProgress(progress.stage, "refused", refusal, is_failing=True)
    service = snapshot.rendered.service_of(revision)
    before = ObservedRevision.from_column(deployment.observed, revision.number)
    queue = observation.queues.get(revision.number)
    # Between the end of its pods and their replacement nothing new is known.
    queue = before.queue if queue is None else queue.after(before.queue)
    if queue is not None and progress.reason == QUEUED:
        progress = replace(progress, message=queue.message)
    return RevisionSnapshot(
        revision=revision,
        progress=progress,
        weight=observation.weight_of(service),
        mirror=observation.mirror_of(service),
        before=before,
        queue=queue,
    )


def observed_percent(deployment: Deployment, percent: int | None) -> int | None:
    """Return the observed percentage. A stopped deployment has no route, so nothing reaches its candidate and its
    drain may end.
    """
    if deployment.is_stopped:
        return 0 if deployment.candidate_revision_id is not None else None
    return percent


def facts_of(
    snapshot: DeploymentSnapshot,
    stable: RevisionSnapshot | None,
    candidate: RevisionSnapshot | None,
    change: ChangeRequest | None,
    at: datetime,
) -> health.HealthFacts:
    deployment, observation = snapshot.deployment, snapshot.observation
    is_moving = change is not None and change.kind in (ChangeKind.SCALE, ChangeKind.START)
    pods = sum(len(of_revision) for of_revision in observation.pods.values())
    return health.HealthFacts(
        stable=stable.progress if stable else None,
        candidate=candidate.progress if candidate else None,
        route_problem=observation.route_problem,
        route_refusal=snapshot.route_refusal,
        # Added replicas that start do not degrade those that serve, and a start begins again.
        was_ready=deployment.first_ready_at is not None and not is_moving,
        # A queue may be long, and says nothing about the revision.
        is_late=deadlines.is_late(deployment, at) and not (stable and stable.is_queued),
        is_retiring=deployment.is_retiring,
        is_stopped=deployment.is_stopped,
        remaining_objects=len(observation.workloads) + pods,
    )
