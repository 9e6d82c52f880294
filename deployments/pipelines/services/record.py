"""Write down what a look at a pipeline showed, and end the change that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.models import Pipeline, PipelineChange
from deployments.pipelines.domain import reconcile
from deployments.pipelines.domain.reconcile import Act, Live, Verdict
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import transitions
from deployments.states import ChangeState, DeploymentState
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock, leases
from portal.core.leases import Lease

# The cluster is as wanted.
_ARRIVED: Final = (DeploymentState.READY, DeploymentState.STOPPED, DeploymentState.RETIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """`healed`: what others had edited and was put right; empty for nothing."""

    live: Live
    act: Act
    verdict: Verdict
    healed: str = ""


def record(pipeline: Pipeline, lease: Lease, looked: Looked) -> None:
    """Nothing when the lease was lost, or when something else is wanted meanwhile."""
    with transaction.atomic():
        if not leases.is_held(Pipeline, lease):
            return
        columns = _columns(pipeline, looked)
        if not _write(pipeline, looked.verdict, columns):
            return
        if looked.healed:
            _audit(pipeline, audit_actions.PIPELINE_HEALED, reason=looked.healed)
        _follow(pipeline, looked)


def note_refusal(pipeline: Pipeline, lease: Lease, words: str) -> None:
    """The cluster refused or gave no answer; what was last seen of it stays written down."""
    state = DeploymentState(pipeline.state)
    if state in (DeploymentState.PENDING, DeploymentState.PROGRESSING):
        state = DeploymentState.PROGRESSING
    verdict = Verdict(state=state, reason=f"The cluster says: {words}")
    with transaction.atomic():
        if leases.is_held(Pipeline, lease) and _write(pipeline, verdict, {}):
            _fail_late(pipeline, verdict.reason)


def _columns(pipeline: Pipeline, looked: Looked) -> dict[str, Any]:
    at = clock.now()
    observed = {
        "conditions": reconcile.conditions_of(looked.live),
        "healed": looked.healed or pipeline.observed.get("healed", ""),
    }
    columns: dict[str, Any] = {"observed": observed, "observed_at": at}
    if looked.act == Act.FINISH_RETIRING:
        columns["is_retired"] = True
    if looked.verdict.state in _ARRIVED:
        columns["observed_generation"] = pipeline.desired_generation
    return columns


def _write(pipeline: Pipeline, verdict: Verdict, columns: dict[str, Any]) -> bool:
    """Only while what is wanted is what was looked at."""
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


def _follow(pipeline: Pipeline, looked: Looked) -> None:
    """The change that asked for it: begun with the first effect, done when it is so."""
    change = _change_of(pipeline)
    if change is None:
        return
    _begin(change)
    is_done = looked.verdict.state in (DeploymentState.READY, DeploymentState.RETIRED)
    if is_done:
        words = "Ready." if looked.verdict.state == DeploymentState.READY else "Removed."
        _end(change, ChangeState.DONE, audit_actions.PIPELINE_CHANGE_DONE, words)
    else:
        _fail_late(pipeline, looked.verdict.reason)


def _begin(change: PipelineChange) -> None:
    if change.state == ChangeState.APPROVED:
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.APPLYING,
            action=audit_actions.PIPELINE_CHANGE_APPLYING,
            deadline_at=change.deadline_at,
        )


def _fail_late(pipeline: Pipeline, reason: str) -> None:
    change = _change_of(pipeline)
    is_late = pipeline.progress_deadline_at and clock.now() >= pipeline.progress_deadline_at
    if change is None or not is_late:
        return
    _begin(change)
    _end(change, ChangeState.FAILED, audit_actions.PIPELINE_CHANGE_FAILED, reason)


def _end(change: PipelineChange, to: ChangeState, action: AuditAction, words: str) -> None:
    transitions.move(actor=SYSTEM, change=change, to=to, action=action, reason=words)
    transitions.tell_finished(change, words)


def _change_of(pipeline: Pipeline) -> PipelineChange | None:
    change = pipelines.open_change_of(pipeline)
    if change is None or change.generation != pipeline.desired_generation:
        return None
    return change


def _audit(pipeline: Pipeline, action: AuditAction, **words: Any) -> None:
    trail.record(
        actor=SYSTEM,
        action=action,
        obj=pipeline,
        label=str(pipeline),
        team_slug=pipeline.team.slug,
        **words,
    )
