"""Asking for a pipeline, for a change of one, or for its end: checked, then it waits for approval."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from deployments.domain import pipelines as domain
from deployments.domain.pipelines import PipelineChangeKind, PipelineSpec
from deployments.domain.problems import Rejected
from deployments.domain.states import ChangeState, DeploymentState, Environment
from deployments.models import Pipeline, PipelineChange
from deployments.selectors import pipelines
from deployments.services import actions, approving, pipeline_checks, pipeline_states, preflight
from deployments.services.change_states import SUBMITTED_SECONDS
from deployments.services.pipeline_checks import Examined
from fleet.selectors import clusters
from portal.accounts import policy, teams
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDraft:
    """What a person fills in for a new pipeline; `spec` as deployments.domain.pipelines reads it."""

    team: str
    cluster_id: int
    environment: Environment
    name: str
    spec: Any


def preview(*, actor: User, draft: PipelineDraft) -> Examined:
    """What a request would be told, without making one. Raises Invalid for what is no pipeline."""
    return pipeline_checks.examine(_row(actor, draft), read_spec(draft.spec))


def preview_change(*, actor: User, pipeline_id: int, spec: Any) -> Examined:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    return pipeline_checks.examine(pipeline, read_spec(spec))


def request_create(*, actor: User, draft: PipelineDraft, comment: str = "") -> PipelineChange:
    """Make the pipeline's row and the request. Raises Invalid when a check refuses."""
    pipeline, spec = _row(actor, draft), read_spec(draft.spec)
    pipeline_checks.require_ok(pipeline_checks.examine(pipeline, spec))
    text = approving.clean(comment)
    try:
        with transaction.atomic():
            pipeline.save()
            return _submit(actor, pipeline, PipelineChangeKind.CREATE, spec, text)
    except IntegrityError as error:
        raise Conflict(
            f"{pipeline} was taken a moment ago. Choose another name.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error


def request_change(
    *, actor: User, pipeline_id: int, spec: Any, comment: str = ""
) -> PipelineChange:
    """Ask for other steps behind the same address."""
    pipeline, wanted = _running(actor, pipeline_id), read_spec(spec)
    if wanted == pipelines.spec_of(pipeline):
        raise Conflict(f"{pipeline} is so already.", code="no_change")
    pipeline_checks.require_ok(pipeline_checks.examine(pipeline, wanted))
    return _submit_alone(actor, pipeline, PipelineChangeKind.CHANGE, wanted, comment)


def request_start(*, actor: User, pipeline_id: int, comment: str = "") -> PipelineChange:
    """Ask to bring back, with the same steps, a pipeline that was stopped."""
    pipeline = _changeable(actor, pipeline_id)
    spec = pipelines.spec_of(pipeline)
    if not pipeline.is_stopped or spec is None:
        raise Conflict(f"{pipeline} is not stopped.", code="not_stopped")
    pipeline_checks.require_ok(pipeline_checks.examine(pipeline, spec))
    return _submit_alone(actor, pipeline, PipelineChangeKind.START, spec, comment)


def request_retire(*, actor: User, pipeline_id: int, comment: str = "") -> PipelineChange:
    pipeline = _changeable(actor, pipeline_id)
    return _submit_alone(actor, pipeline, PipelineChangeKind.RETIRE, None, comment)


def read_spec(data: Any) -> PipelineSpec:
    try:
        return domain.from_json(data)
    except Rejected as error:
        raise preflight.as_invalid(error) from error


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
        state_reason="Waits for approval.",
        next_check_at=at + timedelta(seconds=SUBMITTED_SECONDS),
    )


def _changeable(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.REQUEST_CHANGE, pipeline)
    if pipeline.is_retired or pipeline.is_retiring:
        raise Conflict(f"{pipeline} is retired. Make a new pipeline.", code="retired")
    waiting = pipelines.open_change_of(pipeline)
    if waiting is not None:
        raise Conflict(
            f"{waiting} (request {waiting.pk}) is {waiting.state}. Let it finish, or withdraw it.",
            code="change_open",
        )
    return pipeline


def _running(actor: User, pipeline_id: int) -> Pipeline:
    pipeline = _changeable(actor, pipeline_id)
    if pipeline.is_stopped:
        raise Conflict(f"{pipeline} is stopped. Ask to start it first.", code="stopped")
    return pipeline


def _submit_alone(
    actor: User,
    pipeline: Pipeline,
    kind: PipelineChangeKind,
    spec: PipelineSpec | None,
    comment: str,
) -> PipelineChange:
    text = approving.clean(comment)
    try:
        with transaction.atomic():
            return _submit(actor, pipeline, kind, spec, text)
    except IntegrityError as error:
        raise Conflict(
            f"Someone else asked for a change of {pipeline} a moment ago. Look again.",
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
    pipeline_states.record(
        actor,
        change,
        actions.PIPELINE_CHANGE_REQUESTED,
        before={"spec": pipeline.spec},
        after={"state": change.state, "kind": kind, "spec": change.spec},
        reason=comment,
    )
    pipeline_states.tell_wanted(change)
    return change
