"""The deployments that a pipeline opens to everyone who reaches it, although callers need a key."""

from __future__ import annotations

from deployments.changes.selectors.subjects import pipeline_of
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.domain import descriptions
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines
from deployments.states import PipelineChangeKind


def list_called(pipeline: Pipeline, spec: PipelineSpec) -> list[str]:
    """List the protected deployments that the pipeline calls, in the order of its steps."""
    return pipelines.render(pipeline, spec).protected


def list_added(pipeline: Pipeline, spec: PipelineSpec) -> list[str]:
    """List the protected deployments that the running pipeline does not call yet."""
    before = None if pipeline.is_stopped else pipelines.spec_of(pipeline)
    known = before.deployments if before else ()
    return [name for name in list_called(pipeline, spec) if name not in known]


def is_opening(change: ChangeRequest) -> bool:
    """Whether callers get answers that they did not get before. Nobody needs a key for a pipeline."""
    if descriptions.opens_address(PipelineChangeKind(change.kind)):
        return True
    if change.kind != PipelineChangeKind.CHANGE:
        return False
    spec = pipelines.requested_spec(change)
    return spec is not None and bool(list_added(pipeline_of(change), spec))


def consequence(change: ChangeRequest) -> str:
    """Return a sentence for approvers. Empty where no deployment is opened."""
    spec = pipelines.requested_spec(change)
    names = list_called(pipeline_of(change), spec) if spec is not None else []
    return descriptions.reached_through(names)
