"""Pipelines of a team, one pipeline with its state and requests, and trying it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from deployments.changes.selectors import changes
from deployments.changes.web import items
from deployments.models import Pipeline
from deployments.pipelines.domain import descriptions
from deployments.pipelines.domain.observed import ObservedPipeline
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import try_it
from deployments.serving.domain import inference_call
from deployments.serving.services import stopping
from deployments.serving.web.forms import BodyForm
from deployments.states import CHANGE, ChangeState, DeploymentState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond

_SHOWN = 20
_STEADY = (DeploymentState.READY, DeploymentState.STOPPED)
_MOVING_SECONDS, _STEADY_SECONDS = 3, 15


@dataclass(frozen=True, slots=True)
class PipelineStepLine:
    """A step as it is shown. `leads_to` is a deployment, or empty where it is a node."""

    label: str
    leads_to: str
    node: str
    note: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class NodeCard:
    name: str
    kind: str
    steps: tuple[PipelineStepLine, ...]


@dataclass(frozen=True, slots=True)
class PipelineRow:
    pipeline: Pipeline
    deployments: str
    kind: str
    # A request waits for approval. Of a pipeline that never began its state says so.
    has_waiting_change: bool


@require_GET
@people_only
def pipeline_list(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    pipelines = selectors.list_visible_to(user, team_slug=team)
    submitted = changes.list_visible_to(user, state=ChangeState.SUBMITTED, about=Pipeline)
    waiting = set(submitted.values_list("pipeline_id", flat=True))
    context = {
        "team": owner,
        "rows": [_row(pipeline, is_waiting=pipeline.pk in waiting) for pipeline in pipelines],
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, owner),
    }
    return respond(
        request, "pipelines/list.html", context, parts={"pipeline-rows": "pipelines/_rows.html"}
    )


@require_GET
@people_only
def pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    shown = selectors.get_visible(actor=user, team_slug=team, name=name)
    return respond(
        request,
        "pipelines/pipeline.html",
        _context_of(user, shown),
        parts={"pipeline-head": "pipelines/_poll.html"},
        is_final=shown.is_retired,
    )


@require_POST
@people_only
def try_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    tried = selectors.get_visible(actor=user, team_slug=team, name=name)
    form = BodyForm(request.POST)
    trial = form.run(
        lambda: try_it.send(actor=user, pipeline_id=tried.pk, body=form.cleaned_data["body"])
    )
    context = _context_of(user, tried) | {"try_form": form, "trial": trial}
    parts = {"answer": "pipelines/_answer.html"}
    return respond(request, "pipelines/pipeline.html", context, parts=parts, status=form.status)


def _context_of(user: User, pipeline: Pipeline) -> dict[str, Any]:
    spec = selectors.spec_of(pipeline)
    url, call = selectors.url_of(pipeline), try_it.call_of(pipeline)
    requests = list(changes.list_visible_to(user).filter(pipeline=pipeline)[:_SHOWN])
    open_items = [items.item_of(change) for change in requests if CHANGE[ChangeState(change.state)]]
    is_live = not (pipeline.is_retired or pipeline.is_retiring)
    is_running = is_live and bool(pipeline.desired_generation) and not pipeline.is_stopped
    return {
        "pipeline": pipeline,
        "nodes": nodes_of(spec),
        "url": url,
        "call": call,
        "curl": f"curl --json @request.json \\\n  {url}",
        "try_form": BodyForm(initial={"body": inference_call.prefill_body(call) if call else ""}),
        "observed": ObservedPipeline.from_json(pipeline.observed),
        "yaml": selectors.render(pipeline, spec).to_yaml() if spec else "",
        "open_item": next(iter(open_items), None),
        "poll_seconds": _MOVING_SECONDS
        if open_items or pipeline.state not in _STEADY
        else _STEADY_SECONDS,
        "decided": [
            items.item_of(change) for change in requests if not CHANGE[ChangeState(change.state)]
        ],
        "can_request": is_live and policy.is_allowed(user, Action.REQUEST_CHANGE, pipeline),
        "is_simple": spec is None or len(spec.nodes) == 1,
        "can_stop": is_running
        and policy.is_allowed(user, Action.STOP, pipeline)
        # A stop that needs approval is a request too, and waits for the open one.
        and not (open_items and stopping.needs_approval(pipeline)),
    }


def nodes_of(spec: PipelineSpec | None) -> list[NodeCard]:
    if spec is None:
        return []
    return [
        NodeCard(
            name=node.name,
            kind=node.kind.value,
            steps=tuple(
                PipelineStepLine(
                    label=step.label,
                    leads_to=step.deployment,
                    node=step.node,
                    note=descriptions.step_note(node, step),
                    is_required=step.is_required,
                )
                for step in node.steps
            ),
        )
        for node in spec.nodes
    ]


def _row(pipeline: Pipeline, *, is_waiting: bool) -> PipelineRow:
    spec = selectors.spec_of(pipeline)
    return PipelineRow(
        pipeline=pipeline,
        deployments=", ".join(spec.deployments) if spec else "",
        kind=spec.root.kind.value if spec else "",
        has_waiting_change=is_waiting and bool(pipeline.desired_generation),
    )
