"""Asking for a pipeline, for a change of one, or for its end: checked, then it waits for approval."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from deployments import audit_actions, rejections
from deployments.changes.services import approvals
from deployments.changes.services.transitions import SUBMITTED_SECONDS
from deployments.errors import Rejected
from deployments.models import Pipeline, PipelineChange
from deployments.pipelines.domain import pipeline_spec as domain
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import checks, transitions
from deployments.pipelines.services.checks import Examined
from deployments.states import ChangeState, DeploymentState, Environment, PipelineChangeKind
from fleet.clusters.selectors import clusters
from portal.accounts import policy, teams
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDraft:
    """What a person fills in for a new pipeline; `spec` as deployments.pipelines.domain.pipeline_spec reads it."""

    team: str
    cluster_id: int
    environment: Environment
    name: str
    spec: Any


def preview(*, actor: User, draft: PipelineDraft) -> Examined:
    """What a request would be told, without making one. Raises Invalid for what is no pipeline."""
    return checks.examine(_row(actor, draft), read_spec(draft.spec))


def preview_change(*, actor: User, pipeline_id: int, spec: Any) -> Examined:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    return checks.examine(pipeline, read_spec(spec))


def request_create(*, actor: User, draft: PipelineDraft, comment: str = "") -> PipelineChange:
    """Make the pipeline's row and the request. Raises Invalid when a check refuses."""
    pipeline, spec = _row(actor, draft), read_spec(draft.spec)
    checks.require_ok(checks.examine(pipeline, spec))
    text = approvals.clean(comment)
    try:
        with transaction.atomic():
            pipeline.save()
            return _submit(actor, pipeline, PipelineChangeKind.CREATE, spec, text)
    except IntegrityError as error:
        raise Conflict(
            f"{pipeline} was just taken. Choose another name.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error


def request_change(
    *, actor: User, pipeline_id: int, spec: Any, comment: str = ""
) -> PipelineChange:
    """Request different steps behind the same address."""
    pipeline, wanted = _running(actor, pipeline_id), read_spec(spec)
    if wanted == pipelines.spec_of(pipeline):
        raise Conflict("No changes to apply.", code="no_change")
    checks.require_ok(checks.examine(pipeline, wanted))
    return _submit_alone(actor, pipeline, PipelineChangeKind.CHANGE, wanted, comment)


def request_start(*, actor: User, pipeline_id: int, comment: str = "") -> PipelineChange:
    """Ask to bring back, with the same steps, a pipeline that was stopped."""
    pipeline = _changeable(actor, pipeline_id)
    spec = pipelines.spec_of(pipeline)
    if not pipeline.is_stopped or spec is None:
        raise Conflict(f"{pipeline} is not stopped.", code="not_stopped")
    checks.require_ok(checks.examine(pipeline, spec))
    return _submit_alone(actor, pipeline, PipelineChangeKind.START, spec, comment)


def request_retire(*, actor: User, pipeline_id: int, comment: str = "") -> PipelineChange:
    pipeline = _changeable(actor, pipeline_id)
    return _submit_alone(actor, pipeline, PipelineChangeKind.RETIRE, None, comment)


def read_spec(data: Any) -> PipelineSpec:
    try:
        return domain.from_json(data)
    except Rejected as error:
        raise rejections.as_invalid(error) from error


def _row(actor: User, draft: PipelineDraft) -> Pipeline:
    """Not saved. Raises NotFound for strangers of the team, Forbidden for viewers."""
    team = teams.get_visible(actor=actor, slug=draft.team)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    cluster = clusters.get_cluster(draft.cluster_id)
    at = clock.now()
    return Pipeline(
        team=team,
        cluster_id=cluster.id,
        name=draft.name,
        namespace=team.slug,
        environment=draft.environment,
        created_by=actor,
        created_at=at,
        state=DeploymentState.PENDING,
        state_reason="Waiting for approval.",
        next_check_at=at + timedelta(seconds=SUBMITTED_SECONDS),
    )


def _changeable(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    if pipeline.is_retired or pipeline.is_retiring:
        raise Conflict(f"{pipeline} is retired. Create a new pipeline.", code="retired")
    waiting = pipelines.open_change_of(pipeline)
    if waiting is not None:
        raise Conflict(
            f"The {waiting} (request {waiting.pk}) is {waiting.state}. Let it finish, or withdraw it.",
            code="change_open",
        )
    return pipeline


def _running(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = _changeable(actor, pipeline_id)
    if pipeline.is_stopped:
        raise Conflict(f"{pipeline} is stopped. Request a start first.", code="stopped")
    return pipeline


def _submit_alone(
    actor: User,
    pipeline: Pipeline,
    kind: PipelineChangeKind,
    spec: PipelineSpec | None,
    comment: str,
) -> PipelineChange:
    text = approvals.clean(comment)
    try:
        with transaction.atomic():
            return _submit(actor, pipeline, kind, spec, text)
    except IntegrityError as error:
        raise Conflict(
            f"Someone else requested a change to {pipeline} at the same time. Reload the page.",
            code="change_open",
        ) from error


def _submit(
    actor: User,
    pipeline: Pipeline,
    kind: PipelineChangeKind,
    spec: PipelineSpec | None,
    comment: str,
) -> PipelineChange:
    """Inside a transaction."""
    at = clock.now()
    deadline_at = at + timedelta(seconds=SUBMITTED_SECONDS)
    change = PipelineChange(
        pipeline=pipeline,
        kind=kind,
        state=ChangeState.SUBMITTED,
        requester=actor,
        comment=comment,
        spec=spec.to_json() if spec else {},
        created_at=at,
        deadline_at=deadline_at,
    )
    rules = pipelines.required_now(change)
    change.required = [one.to_json() for one in rules]
    change.evidence_hash = pipelines.evidence_of(change, rules)
    change.save()
    transitions.record(
        actor,
        change,
        audit_actions.PIPELINE_CHANGE_REQUESTED,
        before={"spec": pipeline.spec},
        after={"state": change.state, "kind": kind, "spec": change.spec},
        reason=comment,
    )
    transitions.tell_wanted(change)
    return change
