"""Pages for requesting a pipeline, or other steps of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.web import draft_yaml
from deployments.changes.web.draft_yaml import DraftSnippet
from deployments.changes.web.requests import show_request
from deployments.models import ChangeRequest
from deployments.pipelines.domain import pipeline_spec as domain
from deployments.pipelines.domain.pipeline_spec import NodeKind
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import requests
from deployments.pipelines.services.checks import Examined
from deployments.pipelines.services.requests import PipelineDraft
from deployments.pipelines.web import form as pipeline_form
from deployments.pipelines.web.form import PipelineForm
from deployments.pipelines.web.short_requests import changeable
from deployments.states import Environment
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import Invalid
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond


@dataclass(frozen=True, slots=True)
class Where:
    """A cluster and environment; `why_not` says why a pipeline is not possible there."""

    cluster_id: int
    environment: Environment
    text: str
    deployments: tuple[str, ...]
    why_not: str = ""

    @property
    def key(self) -> str:
        return f"{self.cluster_id}-{self.environment.value}"


@require_http_methods(["GET", "POST"])
@people_only
def new_pipeline(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    policy.require(user, Action.REQUEST_CHANGE, owner)
    places = _places(owner)
    where = next((place for place in places if place.key == request.GET.get("where")), None)
    where = where or next((place for place in places if not place.why_not), None)
    kind = _kind(request, NodeKind.ENSEMBLE)
    form = PipelineForm(
        request.POST or None,
        kind=kind,
        deployments=where.deployments if where else (),
        is_new=True,
    )
    context = _context(owner, form, kind) | {"places": places, "where": where}
    if where is None or request.method == "GET":
        return render(request, "pipelines/form.html", context)

    def draft() -> PipelineDraft:
        return PipelineDraft(
            team=team,
            cluster_id=where.cluster_id,
            environment=where.environment,
            name=form.cleaned_data["name"],
            spec=form.spec(),
        )

    if "submit" not in request.POST:
        if form.is_valid():
            context["snippets"] = _snippets(request, draft())
        return _side(request, form, context, lambda: requests.preview(actor=user, draft=draft()))
    made = form.run(
        lambda: requests.request_create(
            actor=user, draft=draft(), comment=form.cleaned_data["comment"]
        )
    )
    return _after(request, form, made, context)


@require_http_methods(["GET", "POST"])
@people_only
def change_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    pipeline = changeable(user, team, name)
    spec = selectors.spec_of(pipeline)
    if spec is None or len(spec.nodes) > 1:
        return redirect("pipeline", team=team, name=name)
    kind = _kind(request, spec.root.kind)
    initial = pipeline_form.initial_of(spec) if kind == spec.root.kind else {}
    form = PipelineForm(
        request.POST or None,
        initial=initial,
        kind=kind,
        deployments=selectors.callable_names(team=pipeline.team).get(
            (pipeline.cluster_id, pipeline.environment), ()
        ),
        is_new=False,
    )
    context = _context(pipeline.team, form, kind) | {"pipeline": pipeline}
    if request.method == "GET":
        return render(request, "pipelines/form.html", context)
    if "submit" not in request.POST:
        return _side(
            request,
            form,
            context,
            lambda: requests.preview_change(actor=user, pipeline_id=pipeline.pk, spec=form.spec()),
        )
    made = form.run(
        lambda: requests.request_change(
            actor=user,
            pipeline_id=pipeline.pk,
            spec={**spec.to_json(), **form.spec()},
            comment=form.cleaned_data["comment"],
        )
    )
    return _after(request, form, made, context)


def _after(
    request: HttpRequest, form: PipelineForm, made: ChangeRequest | None, context: dict[str, Any]
) -> HttpResponse:
    if made is not None:
        return show_request(request, made)
    if form.refusal is not None:
        form.show_problems(form.refusal.fields)
    return render(request, "pipelines/form.html", context, status=form.status)


def _side(
    request: HttpRequest,
    form: PipelineForm,
    context: dict[str, Any],
    preview: Callable[[], Examined],
) -> HttpResponse:
    """Return the checks as they are while someone fills in the form; nothing is requested yet."""
    examined: Examined | None = None
    problem = ""
    if form.is_valid():
        try:
            examined = preview()
        except Invalid as error:
            problem = error.message
    context |= {"examined": examined, "problem": problem}
    parts = {"side": "pipelines/_side.html"}
    return respond(request, "pipelines/form.html", context, parts=parts)


def _snippets(request: HttpRequest, draft: PipelineDraft) -> list[DraftSnippet]:
    """Return the same request as a script."""
    body = {
        "team": draft.team,
        "cluster_id": draft.cluster_id,
        "environment": draft.environment.value,
        "name": draft.name,
        **draft.spec,
    }
    url = request.build_absolute_uri("/api/v1/pipelines")
    return draft_yaml.snippets(body=body, url=url)


def _context(team: Team, form: PipelineForm, kind: NodeKind) -> dict[str, Any]:
    return {
        "team": team,
        "form": form,
        "kind": next(choice for choice in pipeline_form.KINDS if choice.name == kind.value),
        "kinds": pipeline_form.KINDS,
        "has_labels": kind == NodeKind.ENSEMBLE,
        "has_weights": kind == NodeKind.SPLITTER,
        "has_required": kind in (NodeKind.ENSEMBLE, NodeKind.SEQUENCE),
        "has_conditions": kind in (NodeKind.SWITCH, NodeKind.SEQUENCE),
        "no_chain": domain.NO_CHAIN,
    }


def _kind(request: HttpRequest, default: NodeKind) -> NodeKind:
    kind = request.GET.get("kind", "")
    return NodeKind(kind) if kind in set(NodeKind) else default


def _places(team: Team) -> list[Where]:
    """List every cluster and environment in which the team has deployments."""
    places = []
    reasons = selectors.reasons(team=team)
    for cluster in clusters.list_clusters():
        offer = selectors.offer_for(cluster.capabilities)
        for environment in Environment:
            answers = reasons.get((cluster.id, environment), {})
            if not answers:
                continue
            names = tuple(name for name, why_not in answers.items() if not why_not)
            why_not = offer.why if offer.ok is False else ""
            if not why_not and len(names) < 2:
                why_not = _too_few(names, [why for why in answers.values() if why])
            text = f"{cluster.name} · {environment.value}"
            places.append(Where(cluster.id, environment, text, names, why_not))
    return places


def _too_few(names: Sequence[str], reasons: Sequence[str]) -> str:
    if not reasons:
        return f"Only {names[0]} serves there. A pipeline needs two deployments."
    called = f"It could call only {names[0]}" if names else "It could call none"
    return f"A pipeline needs two deployments. {called}: {' '.join(reasons)}"
