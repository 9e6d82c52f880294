"""Records what was observed of a pipeline, and ends the request that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.changes.selectors import changes
from deployments.changes.services import notifications, transitions
from deployments.delivery.domain import refusals
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.domain import reconcile
from deployments.pipelines.domain.observed import ObservedPipeline
from deployments.pipelines.domain.reconcile import Act, Live, PipelineVerdict
from deployments.states import ChangeState, DeploymentState
from fleet.kube.domain.errors import ClusterError
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock, leases
from portal.core.leases import Lease

# The cluster is as desired.
_ARRIVED: Final = (DeploymentState.READY, DeploymentState.STOPPED, DeploymentState.RETIRED)
_DONE: Final = {
    DeploymentState.READY: "Ready.",
    DeploymentState.STOPPED: "Stopped.",
    DeploymentState.RETIRED: "Removed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineObservation:
    """The result of a reconcile pass. `reverted` is the drift that was just reverted; empty for none."""

    live: Live
    act: Act
    verdict: PipelineVerdict
    reverted: str = ""


def record(pipeline: Pipeline, lease: Lease, observation: PipelineObservation) -> None:
    """Store what was observed. Does nothing when the lease was lost, or when the desired state changed
    meanwhile.
    """
    with transaction.atomic():
        if not leases.is_held(Pipeline, lease):
            return
        columns = _columns(pipeline, observation)
        if not _write(pipeline, observation.verdict, columns):
            return
        if observation.reverted:
            _audit(pipeline, audit_actions.PIPELINE_DRIFT_REVERTED, reason=observation.reverted)
        _follow(pipeline, observation)


def note_refusal(pipeline: Pipeline, lease: Lease, error: ClusterError) -> None:
    """Note that the cluster refused or did not answer. What was last observed stays."""
    state = DeploymentState(pipeline.state)
    if state in (DeploymentState.PENDING, DeploymentState.PROGRESSING):
        state = DeploymentState.PROGRESSING
    verdict = PipelineVerdict(state=state, reason=refusals.describe_failure(error))
    with transaction.atomic():
        if leases.is_held(Pipeline, lease) and _write(pipeline, verdict, {}):
            _fail_late(pipeline, verdict.reason)


def _columns(pipeline: Pipeline, observation: PipelineObservation) -> dict[str, Any]:
    at = clock.now()
    before = ObservedPipeline.from_json(pipeline.observed)
    observed = ObservedPipeline(
        conditions=reconcile.conditions_of(observation.live),
        reverted=observation.reverted or before.reverted,
    )
    columns: dict[str, Any] = {"observed": observed.to_json(), "observed_at": at}
    if observation.act == Act.FINISH_RETIRING:
        columns["is_retired"] = True
    if observation.verdict.state == DeploymentState.READY and pipeline.first_ready_at is None:
        columns["first_ready_at"] = at
    if observation.verdict.state in _ARRIVED:
        columns["observed_generation"] = pipeline.desired_generation
    return columns


def _write(pipeline: Pipeline, verdict: PipelineVerdict, columns: dict[str, Any]) -> bool:
    """Write only while the desired state is the observed one."""
    rows = Pipeline.objects.filter(
        pk=pipeline.pk, desired_generation=pipeline.desired_generation, is_retired=False
    )
    if not rows.update(state=verdict.state, state_reason=verdict.reason, **columns):
        return False
    if verdict.state != pipeline.state:
        _audit(
            pipeline,
            audit_actions.PIPELINE_STATE,
            before={"state": pipeline.state},
            after={"state": verdict.state},
            reason=verdict.reason,
        )
    return True


def _follow(pipeline: Pipeline, observation: PipelineObservation) -> None:
    """End the request that is being applied."""
    change = _applying(pipeline)
    if change is None:
        return
    if observation.verdict.state in _ARRIVED:
        message = _DONE[observation.verdict.state]
        _end(change, ChangeState.DONE, audit_actions.CHANGE_DONE, message)
    else:
        _fail_late(pipeline, observation.verdict.reason)


def _fail_late(pipeline: Pipeline, reason: str) -> None:
    change = _applying(pipeline)
    is_late = pipeline.progress_deadline_at and clock.now() >= pipeline.progress_deadline_at
    if change is not None and is_late:
        _end(change, ChangeState.FAILED, audit_actions.CHANGE_FAILED, reason)


def _end(change: ChangeRequest, to: ChangeState, action: AuditAction, message: str) -> None:
    transitions.move(actor=SYSTEM, change=change, to=to, action=action, reason=message)
    notifications.notify_result(change, message=message)


def _applying(pipeline: Pipeline) -> ChangeRequest | None:
    """Return the request that is being applied. Desired state and request move in one transaction, so that it
    is the one just observed.
    """
    change = changes.open_request_of(pipeline)
    return change if change is not None and change.state == ChangeState.APPLYING else None


def _audit(pipeline: Pipeline, action: AuditAction, **details: Any) -> None:
    trail.record(
        actor=SYSTEM,
        action=action,
        obj=pipeline,
        team_slug=pipeline.team.slug,
        **details,
    )
