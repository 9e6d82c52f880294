"""Pipelines as the subject of change requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments import audit_actions
from deployments.approvals.domain.rules import ChangeFacts
from deployments.changes.selectors.subjects import (
    ChangedField,
    ChangeSubject,
    Description,
    pipeline_of,
)
from deployments.environments.selectors import environment_rules
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.domain import descriptions
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines, protected
from deployments.pipelines.selectors.pipelines import RenderedPipeline
from deployments.pipelines.services import checks as pipeline_checks
from deployments.preflight.domain.checks import Check, Cost
from deployments.states import ChangeKind, DeploymentState, PipelineChangeKind
from portal.accounts.policy import Actor
from portal.audit import trail

# Approval rules name kinds of deployment changes; a pipeline's count as these.
_RULE_KINDS: Final = {
    PipelineChangeKind.CREATE: ChangeKind.DEPLOY,
    PipelineChangeKind.CHANGE: ChangeKind.DEPLOY,
    PipelineChangeKind.STOP: ChangeKind.STOP,
    PipelineChangeKind.START: ChangeKind.START,
    PipelineChangeKind.RETIRE: ChangeKind.RETIRE,
}


class PipelineSubject(ChangeSubject[RenderedPipeline]):
    def facts(self, change: ChangeRequest) -> ChangeFacts:
        """Return the facts that rules match. A pipeline takes no GPU, so rules about cost and GPUs do not match."""
        pipeline = pipeline_of(change)
        return ChangeFacts(
            team_id=pipeline.team_id,
            environment=pipeline.environment,
            kind=_RULE_KINDS[PipelineChangeKind(change.kind)],
            instance_types=(),
            gpu_names=(),
            has_cost=False,
            month_amount=None,
            opens_address=protected.is_opening(change),
        )

    def describe(self, change: ChangeRequest) -> Description:
        pipeline, kind = pipeline_of(change), PipelineChangeKind(change.kind)
        parts = [pipeline.team.slug, pipeline.environment, pipeline.cluster.name]
        if descriptions.opens_address(kind):
            parts.append("public, no key")
        return Description(
            title=descriptions.change_title(kind, pipeline.name),
            detail=" · ".join(parts),
            consequence=f"{descriptions.consequence(kind)} {protected.consequence(change)}".strip(),
        )

    def diff(self, change: ChangeRequest) -> list[ChangedField]:
        requested, pipeline = pipelines.requested_spec(change), pipeline_of(change)
        if requested is None:
            return []
        is_running = pipeline.spec and not pipeline.is_stopped
        before = descriptions.fields_of(PipelineSpec.from_json(pipeline.spec)) if is_running else {}
        after = descriptions.fields_of(requested)
        return [
            ChangedField(field=name, before=before.get(name, ""), after=after.get(name, ""))
            for name in [*after, *(name for name in before if name not in after)]
        ]

    def render(self, change: ChangeRequest) -> RenderedPipeline | None:
        requested = pipelines.requested_spec(change)
        return None if requested is None else pipelines.render(pipeline_of(change), requested)

    def evidence(
        self, change: ChangeRequest, rendered: RenderedPipeline | None
    ) -> Mapping[str, Any]:
        pipeline = pipeline_of(change)
        rules = environment_rules.in_force(pipeline.environment, pipeline.team_id)
        callers = {"callers_need_key": True} if rules.callers_need_key else {}
        through = {"through": rendered.protected} if rendered and rendered.protected else {}
        return {
            "before": pipeline.spec,
            "requested": change.pipeline_spec,
            **callers,
            **through,
        }

    def checks(
        self, change: ChangeRequest, rendered: RenderedPipeline | None
    ) -> tuple[tuple[Check, ...], Cost | None]:
        if rendered is None:
            return (), None
        return pipeline_checks.examine(pipeline_of(change), rendered).checks, None

    def require_all(self, checks: Sequence[Check]) -> None:
        pipeline_checks.require_all(checks)

    def preload(self, requests: Sequence[ChangeRequest]) -> None:
        requested = [(pipeline_of(row), pipelines.requested_spec(row)) for row in requests]
        pipelines.preload_members([(row, spec) for row, spec in requested if spec is not None])

    def retire_unbegun(self, change: ChangeRequest, *, actor: Actor, reason: str) -> None:
        """Retire a pipeline that never ran, so that its name is free again."""
        pipeline = pipeline_of(change)
        rows = Pipeline.objects.filter(pk=pipeline.pk, desired_generation=0, is_retired=False)
        if rows.update(
            is_retired=True,
            state=DeploymentState.RETIRED,
            state_reason=reason,
            next_check_at=None,
        ):
            trail.record(
                actor=actor,
                action=audit_actions.PIPELINE_RETIRED,
                obj=pipeline,
                team_slug=change.team.slug,
                after={"state": DeploymentState.RETIRED},
                reason=reason,
            )
