"""Pipelines: those of a team, one with its state and its open request, and trying it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from deployments.approvals.selectors import approvals
from deployments.approvals.web.forms import DecisionForm
from deployments.changes.selectors import changes
from deployments.changes.web import items
from deployments.models import Pipeline, PipelineChange
from deployments.pipelines.domain.pipeline_spec import ANYTHING, PipelineSpec
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import decisions, try_it
from deployments.serving.domain import inference_call
from deployments.serving.web.forms import BodyForm
from deployments.states import CHANGE, ChangeState, PipelineChangeKind
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond

_DONE = {
    "approve": "Approved.",
    "reject": "Rejected.",
    "withdraw": "Withdrawn.",
}
_CONSEQUENCES = {
    PipelineChangeKind.CREATE: "Approving starts a router that calls these deployments.",
    PipelineChangeKind.CHANGE: "Approving replaces the steps; the address stays.",
    PipelineChangeKind.START: "Approving starts its router again, with the same steps.",
    PipelineChangeKind.RETIRE: "Approving removes the address. The deployments stay.",
}
_TITLES = {
    PipelineChangeKind.CREATE: "New pipeline requested",
    PipelineChangeKind.CHANGE: "Change of steps requested",
    PipelineChangeKind.START: "Start requested",
    PipelineChangeKind.RETIRE: "Retirement requested",
}
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class StepLine:
    """`leads_to` is a deployment, or empty where it is a node."""

    label: str
    leads_to: str
    node: str
    words: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class NodeCard:
    name: str
    kind: str
    steps: tuple[StepLine, ...]


@dataclass(frozen=True, slots=True)
class Row:
    pipeline: Pipeline
    asks: str
    kind: str
    is_waiting: bool


@require_GET
@people_only
def pipeline_list(request: HttpRequest, user: User) -> HttpResponse:
    team = teams.current(request)
    found = selectors.list_visible_to(user, team_slug=team.slug if team else None)
    waiting = set(
        selectors.list_changes(user, state=ChangeState.SUBMITTED).values_list(
            "pipeline_id", flat=True
        )
    )
    context = {
        "team": team,
        "rows": [_row(one, is_waiting=one.pk in waiting) for one in found],
        "can_request": team is not None and policy.is_allowed(user, Action.REQUEST_CHANGE, team),
    }
    return respond(
        request, "pipelines/list.html", context, parts={"pipeline-rows": "pipelines/_rows.html"}
    )


@require_http_methods(["GET", "POST"])
@people_only
def pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    """POST decides on the open request."""
    found = selectors.get_visible(actor=user, team_slug=team, name=name)
    form = DecisionForm(request.POST or None)
    change = selectors.open_change_of(found)
    if request.method == "POST" and change is not None:
        asked = change
        if form.run(lambda: _decide(user, asked, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["decision"]])
            return redirect("pipeline", team=team, name=name)
        change = selectors.open_change_of(found)
    context = _context_of(user, found) | _decision_of(user, change) | {"form": form}
    return respond(
        request,
        "pipelines/pipeline.html",
        context,
        parts={"pipeline-state": "pipelines/_state.html"},
        is_final=found.is_retired,
        status=form.status if form.is_bound else 200,
    )


@require_POST
@people_only
def try_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    found = selectors.get_visible(actor=user, team_slug=team, name=name)
    form = BodyForm(request.POST)
    trial = form.run(
        lambda: try_it.send(actor=user, pipeline_id=found.pk, body=form.cleaned_data["body"])
    )
    change = selectors.open_change_of(found)
    context = _context_of(user, found) | _decision_of(user, change)
    context |= {"form": DecisionForm(), "try_form": form, "trial": trial}
    parts = {"answer": "pipelines/_answer.html"}
    return respond(request, "pipelines/pipeline.html", context, parts=parts, status=form.status)


def _decide(user: User, change: PipelineChange, form: DecisionForm) -> PipelineChange:
    data = form.cleaned_data
    if data["decision"] == "approve":
        return decisions.approve(
            actor=user,
            change_id=change.pk,
            evidence_hash=data["evidence_hash"],
            comment=data["comment"],
        )
    if data["decision"] == "reject":
        return decisions.reject(actor=user, change_id=change.pk, comment=data["comment"])
    return decisions.withdraw(actor=user, change_id=change.pk, reason=data["comment"])


def _context_of(user: User, found: Pipeline) -> dict[str, Any]:
    spec = selectors.spec_of(found)
    url = selectors.url_of(found)
    call = try_it.call_of(found)
    body = inference_call.prefilled(call) if call else ""
    return {
        "pipeline": found,
        "nodes": nodes_of(spec),
        "url": url,
        "call": call,
        "curl": f"curl --json @request.json \\\n  {url}",
        "try_form": BodyForm(initial={"body": body}),
        "conditions": found.observed.get("conditions", []),
        "healed": found.observed.get("healed", ""),
        "yaml": selectors.yaml_of(found, spec, selectors.members_asked(found)),
        "history": [
            one for one in selectors.changes_of(found) if not CHANGE[ChangeState(one.state)]
        ][:_SHOWN],
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, found)
        and not found.is_retired
        and not found.is_retiring,
        "is_simple": spec is None or len(spec.nodes) == 1,
        "may_stop": policy.is_allowed(user, Action.STOP, found)
        and bool(found.desired_generation)
        and not (found.is_stopped or found.is_retiring or found.is_retired),
    }


def _decision_of(user: User, change: PipelineChange | None) -> dict[str, Any]:
    """For the partials of a deployment's request, which ask for the same."""
    if change is None:
        return {"change": None}
    wanted = selectors.asked_of(change)
    may_reject, _ = changes.may_decide(user, change)
    may_approve, why_not = changes.may_approve(user, change)
    is_submitted = change.state == ChangeState.SUBMITTED
    members = selectors.members_asked(change.pipeline)
    return {
        "change": change,
        "wanted_nodes": nodes_of(wanted),
        "wanted_yaml": selectors.yaml_of(change.pipeline, wanted, members),
        "item": {"consequence": _CONSEQUENCES[PipelineChangeKind(change.kind)]},
        "asked_title": _TITLES[PipelineChangeKind(change.kind)],
        "environment": change.pipeline.environment,
        "decide_at": reverse("pipeline", args=(change.team.slug, change.pipeline.name)),
        "approvals": items.approvals_of(change, {"approvals": []}),
        "standing": approvals.standing_of(change),
        "still_needed": approvals.people_still_needed(change),
        "may_approve": may_approve,
        "may_reject": may_reject,
        "why_not": why_not if is_submitted else "",
        "may_withdraw": is_submitted and policy.is_allowed(user, Action.REQUEST_CHANGE, change),
    }


def nodes_of(spec: PipelineSpec | None) -> list[NodeCard]:
    if spec is None:
        return []
    return [
        NodeCard(
            name=node.name,
            kind=node.kind.value,
            steps=tuple(
                StepLine(
                    label=step.label,
                    leads_to=step.deployment,
                    node=step.node,
                    words=_words(step.weight, step.condition, node.kind.value),
                    is_required=step.is_required,
                )
                for step in node.steps
            ),
        )
        for node in spec.nodes
    ]


def _words(weight: int | None, condition: str, kind: str) -> str:
    if weight is not None:
        return f"{weight}% of requests"
    if kind == "switch" and condition in ("", ANYTHING):
        return "all other requests"
    return f"if {condition}" if condition else ""


def _row(found: Pipeline, *, is_waiting: bool) -> Row:
    spec = selectors.spec_of(found)
    return Row(
        pipeline=found,
        asks=", ".join(spec.deployments) if spec else "",
        kind=spec.root.kind.value if spec else "",
        is_waiting=is_waiting,
    )
