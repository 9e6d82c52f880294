"""Requests a pipeline or a change of one: everything is checked, then it waits for its approvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployments import rejections
from deployments.changes.selectors import changes
from deployments.changes.services import approvals, new_request
from deployments.changes.services.transitions import PENDING_REASONS
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.domain import pipeline_spec as domain
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import checks
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
    """The fields of a new pipeline; `spec` as deployments.pipelines.domain.pipeline_spec reads it."""

    team: str
    cluster_id: int
    environment: Environment
    name: str
    spec: Any


@dataclass(frozen=True, slots=True)
class _Requested:
    """A pipeline request; without a spec it removes."""

    kind: PipelineChangeKind
    comment: str
    spec: PipelineSpec | None = None
    examined: Examined | None = None


def preview(*, actor: User, draft: PipelineDraft) -> Examined:
    """Return the checks of a request, without sending one. Raises Invalid for an unreadable spec."""
    return _examine(_row(actor, draft), read_spec(draft.spec))


def preview_change(*, actor: User, pipeline_id: int, spec: Any) -> Examined:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    return _examine(pipeline, read_spec(spec))


def request_create(*, actor: User, draft: PipelineDraft, comment: str = "") -> ChangeRequest:
    """Create the pipeline's row and the request. Raises Invalid when a check refuses."""
    pipeline, spec = _row(actor, draft), read_spec(draft.spec)
    examined = _examine(pipeline, spec)
    checks.require_ok(examined)
    text = approvals.clean(comment)
    with new_request.new_name(str(pipeline)):
        pipeline.save()
        return _submit(actor, pipeline, _Requested(PipelineChangeKind.CREATE, text, spec, examined))


def request_change(*, actor: User, pipeline_id: int, spec: Any, comment: str = "") -> ChangeRequest:
    """Request different steps behind the same address."""
    pipeline, requested = _running(actor, pipeline_id), read_spec(spec)
    if requested == pipelines.spec_of(pipeline):
        raise Conflict("No changes to apply.", code="no_change")
    return _check_and_submit(actor, pipeline, PipelineChangeKind.CHANGE, requested, comment)


def request_start(*, actor: User, pipeline_id: int, comment: str = "") -> ChangeRequest:
    """Start a stopped pipeline again, with the same steps."""
    pipeline = _changeable(actor, pipeline_id)
    spec = pipelines.spec_of(pipeline)
    if not pipeline.is_stopped or spec is None:
        raise Conflict(f"{pipeline} is not stopped.", code="not_stopped")
    return _check_and_submit(actor, pipeline, PipelineChangeKind.START, spec, comment)


def request_stop(*, actor: User, pipeline_id: int, comment: str = "") -> ChangeRequest:
    """Remove address and router once approved, as services/stop.py does at once."""
    pipeline = _running(actor, pipeline_id)
    if not pipeline.desired_generation:
        raise Conflict(f"{pipeline} is not serving yet.", code="not_serving")
    return _submit_removal(actor, pipeline, PipelineChangeKind.STOP, comment)


def request_retire(*, actor: User, pipeline_id: int, comment: str = "") -> ChangeRequest:
    pipeline = _changeable(actor, pipeline_id)
    return _submit_removal(actor, pipeline, PipelineChangeKind.RETIRE, comment)


def _examine(pipeline: Pipeline, spec: PipelineSpec) -> Examined:
    return checks.examine(pipeline, pipelines.render(pipeline, spec))


def read_spec(data: Any) -> PipelineSpec:
    with rejections.as_invalid():
        return domain.from_json(data)


def _row(actor: User, draft: PipelineDraft) -> Pipeline:
    """Return an unsaved row. Raises NotFound for people of other teams, Forbidden for viewers."""
    team = teams.get_visible(actor=actor, slug=draft.team)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    cluster = clusters.get_cluster(draft.cluster_id)
    return Pipeline(
        team=team,
        cluster_id=cluster.id,
        name=draft.name,
        namespace=team.slug,
        environment=draft.environment,
        created_by=actor,
        created_at=clock.now(),
        state=DeploymentState.PENDING,
        state_reason=PENDING_REASONS[ChangeState.SUBMITTED],
    )


def _changeable(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    if pipeline.is_retired or pipeline.is_retiring:
        raise Conflict(f"{pipeline} is retired. Create a new pipeline.", code="retired")
    open_change = changes.open_request_of(pipeline)
    if open_change is not None:
        raise new_request.already_open(open_change)
    return pipeline


def _running(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = _changeable(actor, pipeline_id)
    if pipeline.is_stopped:
        raise Conflict(f"{pipeline} is stopped. Request a start first.", code="stopped")
    return pipeline


def _check_and_submit(
    actor: User, pipeline: Pipeline, kind: PipelineChangeKind, spec: PipelineSpec, comment: str
) -> ChangeRequest:
    examined = _examine(pipeline, spec)
    checks.require_ok(examined)
    requested = _Requested(kind, approvals.clean(comment), spec, examined)
    with new_request.only_one(pipeline):
        return _submit(actor, pipeline, requested)


def _submit_removal(
    actor: User, pipeline: Pipeline, kind: PipelineChangeKind, comment: str
) -> ChangeRequest:
    requested = _Requested(kind, approvals.clean(comment))
    with new_request.only_one(pipeline):
        return _submit(actor, pipeline, requested)


def _submit(actor: User, pipeline: Pipeline, requested: _Requested) -> ChangeRequest:
    """Call inside a transaction."""
    examined = requested.examined
    change = ChangeRequest(
        pipeline=pipeline,
        kind=requested.kind,
        comment=requested.comment,
        pipeline_spec=requested.spec.to_json() if requested.spec else {},
        checks=[check.to_json() for check in examined.checks] if examined else [],
    )
    return new_request.submit(
        actor=actor,
        change=change,
        before={"spec": pipeline.spec},
        after={"spec": change.pipeline_spec},
    )
