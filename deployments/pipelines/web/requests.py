"""Asking for a pipeline, for other steps of one, and for its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.web import draft_yaml
from deployments.changes.web.draft_yaml import Snippet
from deployments.models import Pipeline, PipelineChange
from deployments.pipelines.domain import pipeline_spec as domain
from deployments.pipelines.domain.pipeline_spec import NodeKind
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import requests
from deployments.pipelines.services import stop as pipeline_stop
from deployments.pipelines.services.checks import Examined
from deployments.pipelines.services.requests import PipelineDraft
from deployments.pipelines.web import form as pipeline_form
from deployments.pipelines.web.form import PipelineForm
from deployments.states import Environment
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import Invalid
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond
from portal.ui.service_form import CommentForm


@dataclass(frozen=True, slots=True)
class Where:
    """A cluster and environment; `why_not` says why no pipeline can be there."""

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
def new_pipeline(request: HttpRequest, user: User) -> HttpResponse:
    team = teams.current(request)
    if team is None:
        return redirect("pipelines")
    policy.require(user, Action.REQUEST_CHANGE, team)
    places = _places(team)
    where = next((one for one in places if one.key == request.GET.get("where")), None)
    where = where or next((one for one in places if not one.why_not), None)
    kind = _kind(request, NodeKind.ENSEMBLE)
    form = PipelineForm(
        request.POST or None,
        kind=kind,
        deployments=where.deployments if where else (),
        is_new=True,
    )
    context = _context(team, form, kind) | {"places": places, "where": where}
    if where is None or request.method == "GET":
        return render(request, "pipelines/form.html", context)

    def draft() -> PipelineDraft:
        return PipelineDraft(
            team=team.slug,
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
    found = selectors.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, found)
    spec = selectors.spec_of(found)
    if spec is None or len(spec.nodes) > 1:
        return redirect("pipeline", team=team, name=name)
    kind = _kind(request, spec.root.kind)
    initial = pipeline_form.initial_of(spec) if kind == spec.root.kind else {}
    form = PipelineForm(
        request.POST or None,
        initial=initial,
        kind=kind,
        deployments=_names(selectors.members_asked(found)),
        is_new=False,
    )
    context = _context(found.team, form, kind) | {"pipeline": found}
    if request.method == "GET":
        return render(request, "pipelines/form.html", context)
    if "submit" not in request.POST:
        return _side(
            request,
            form,
            context,
            lambda: requests.preview_change(actor=user, pipeline_id=found.pk, spec=form.spec()),
        )
    made = form.run(
        lambda: requests.request_change(
            actor=user,
            pipeline_id=found.pk,
            spec={**spec.to_json(), **form.spec()},
            comment=form.cleaned_data["comment"],
        )
    )
    return _after(request, form, made, context)


@dataclass(frozen=True, slots=True)
class _Ask:
    """One page with a reason and a button."""

    verb: str
    consequence: str
    button: str
    tone: str


_RETIRE = _Ask(
    "Retire",
    "Removes the address and its router once approved. The deployments behind it stay.",
    "Request retirement",
    "danger",
)
_START = _Ask("Start", "Brings back the same steps once approved.", "Request start", "primary")
_STOP = _Ask(
    "Stop",
    "Stops at once, without approval. The address returns 404. The deployments behind it keep serving.",
    "Stop pipeline",
    "danger",
)


@require_http_methods(["GET", "POST"])
@people_only
def retire_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    return _ask(request, user, (team, name), _RETIRE, requests.request_retire)


@require_http_methods(["GET", "POST"])
@people_only
def start_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    return _ask(request, user, (team, name), _START, requests.request_start)


@require_http_methods(["GET", "POST"])
@people_only
def stop_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    def stop(*, actor: User, pipeline_id: int, comment: str) -> Pipeline:
        return pipeline_stop.stop(actor=actor, pipeline_id=pipeline_id, reason=comment)

    return _ask(request, user, (team, name), _STOP, stop)


def _ask(
    request: HttpRequest, user: User, place: tuple[str, str], ask: _Ask, call: Callable[..., Any]
) -> HttpResponse:
    found = selectors.get_visible(actor=user, team_slug=place[0], name=place[1])
    policy.require(user, Action.REQUEST_CHANGE, found)
    form = CommentForm(request.POST or None)
    if request.method == "POST":
        made = form.run(
            lambda: call(actor=user, pipeline_id=found.pk, comment=form.cleaned_data["comment"])
        )
        if isinstance(made, PipelineChange):
            return _asked(request, found)
        if made is not None:
            messages.success(request, f"{found.name} is stopped.")
            return redirect("pipeline", team=place[0], name=place[1])
    context = {"pipeline": found, "form": form, "ask": ask, "url": selectors.url_of(found)}
    return render(request, "pipelines/ask.html", context, status=form.status)


def _after(
    request: HttpRequest, form: PipelineForm, made: PipelineChange | None, context: dict[str, Any]
) -> HttpResponse:
    if made is not None:
        return _asked(request, made.pipeline)
    if form.refusal is not None:
        form.show_wrong(form.refusal.fields)
    return render(request, "pipelines/form.html", context, status=form.status)


def _asked(request: HttpRequest, found: Pipeline) -> HttpResponse:
    messages.success(request, "Request sent. Waiting for an approver.")
    return redirect("pipeline", team=found.team.slug, name=found.name)


def _side(
    request: HttpRequest, form: PipelineForm, context: dict[str, Any], look: Any
) -> HttpResponse:
    """The checks as they stand while someone fills in the form; nothing is asked for yet."""
    examined: Examined | None = None
    problem = ""
    if form.is_valid():
        try:
            examined = look()
        except Invalid as error:
            problem = error.message
    context |= {"examined": examined, "problem": problem}
    parts = {"side": "pipelines/_side.html"}
    return respond(request, "pipelines/form.html", context, parts=parts)


def _snippets(request: HttpRequest, draft: PipelineDraft) -> list[Snippet]:
    """The same request from a script."""
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
        "kind": next(one for one in pipeline_form.KINDS if one.name == kind.value),
        "kinds": pipeline_form.KINDS,
        "has_labels": kind == NodeKind.ENSEMBLE,
        "has_weights": kind == NodeKind.SPLITTER,
        "has_required": kind in (NodeKind.ENSEMBLE, NodeKind.SEQUENCE),
        "has_conditions": kind in (NodeKind.SWITCH, NodeKind.SEQUENCE),
        "no_chain": domain.NO_CHAIN,
    }


def _kind(request: HttpRequest, usual: NodeKind) -> NodeKind:
    wanted = request.GET.get("kind", "")
    return NodeKind(wanted) if wanted in {kind.value for kind in NodeKind} else usual


def _places(team: Team) -> list[Where]:
    """Every cluster and environment in which the team has deployments."""
    found = []
    for cluster in clusters.list_clusters():
        offer = selectors.offer_for(team, cluster.capabilities)
        for environment in Environment:
            members = selectors.members_of(
                team=team, cluster_id=cluster.id, environment=environment
            )
            names = _names(members)
            if not names:
                continue
            why_not = offer.why if offer.ok is False else ""
            if not why_not and len(names) < 2:
                why_not = f"Only {names[0]} serves there. A pipeline needs two deployments."
            text = f"{cluster.name} · {environment.value}"
            found.append(Where(cluster.id, environment, text, names, why_not))
    return found


def _names(members: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, member in members.items() if not member.why_not)
