"""A new deployment: one address, four steps, nothing kept between requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.domain.spec_engines import LLM_ENGINES
from deployments.services import changes
from deployments.web import (
    deploy_page,
    deploy_settings,
    deploy_shares,
    draft_yaml,
    request_body,
)
from deployments.web.deploy_draft import Draft, build
from deployments.web.deploy_form import STEP_NAMES, STEPS, DeployForm, Step, is_back, step_to_show
from deployments.web.draft_yaml import YamlForm
from deployments.web.fragments import respond
from deployments.web.manifest_views import manifests_of_text
from fleet.selectors.clusters import ClusterInfo
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import NotFound
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import is_partial

_FIELDS = tuple(DeployForm.base_fields)


@dataclass(frozen=True, slots=True)
class StepItem:
    step: Step
    # "done", "on" or "".
    tone: str


@require_http_methods(["GET", "POST"])
@people_only
def new_deployment(request: HttpRequest, user: User) -> HttpResponse:
    team = teams.current(request)
    if team is None:
        raise NotFound("You are in no team yet. Ask a lead to add you to theirs.")
    policy.require(user, Action.REQUEST_CHANGE, team)
    if request.method == "GET":
        return _first_look(request, user, team)
    if request.POST.get("as") == "yaml":
        return _from_yaml(request, user, team)
    is_choosing = request.POST.get("at", "model") == "model"
    draft = build(user, team, _posted(request), is_choosing_version=is_choosing)
    return _from_form(request, draft)


def _first_look(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    draft = build(user, team, {"version": request.GET.get("version", "")})
    at = "serving" if draft.version else "model"
    if draft.version is None and len(draft.versions) == 1:
        draft = build(user, team, {"version": str(draft.versions[0].pk)})
    draft.form.errors.clear()
    return _show(request, draft, at=at)


def _from_form(request: HttpRequest, draft: Draft) -> HttpResponse:
    at, go = request.POST.get("at", "model"), request.POST.get("go", "")
    if is_partial(request):
        return _show(request, draft, at=at)
    if request.POST.get("view") == "yaml":
        return _show(request, draft, at=at, shown_as="yaml")
    if go == "submit":
        return _submit(request, draft)
    wanted = go if go in STEP_NAMES else at
    _forget_errors_after(draft.form, at, is_back=is_back(at=at, wanted=wanted))
    return _show(request, draft, at=step_to_show(draft.form, at=at, wanted=wanted))


def _from_yaml(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    form = YamlForm(request.POST)
    data = _posted(request)
    at = request.POST.get("at", "model")
    if form.is_valid():
        try:
            data = draft_yaml.read(form.cleaned_data["yaml"])
        except forms.ValidationError as error:
            form.add_error("yaml", error)
    draft = build(user, team, data)
    if not form.is_valid():
        draft.form.errors.clear()
        return _show(request, draft, at=at, shown_as="yaml", yaml_form=form)
    if is_partial(request) or request.POST.get("view") == "yaml":
        return _show(request, draft, at=at, shown_as="yaml")
    return _show(request, draft, at=draft.form.first_wrong_step())


def _submit(request: HttpRequest, draft: Draft) -> HttpResponse:
    asked, comment = draft.asked, draft.data.get("comment", "")
    change = None
    if asked is not None:
        change = draft.form.run(
            lambda: changes.request_deploy(actor=draft.user, draft=asked, comment=comment)
        )
    if change is None:
        return _show(request, draft, at=draft.form.first_wrong_step())
    messages.success(request, "The request is with your team's leads.")
    return redirect("change", change_id=change.pk)


def _posted(request: HttpRequest) -> dict[str, str]:
    return {name: str(request.POST[name]) for name in _FIELDS if name in request.POST}


def _forget_errors_after(form: DeployForm, at: str, *, is_back: bool) -> None:
    """Fields of steps that were not visited yet are not wrong yet; going back asks for nothing."""
    if is_back or at not in STEP_NAMES:
        form.errors.clear()
        return
    for step in STEPS[STEP_NAMES.index(at) + 1 :]:
        for field in step.fields:
            form.errors.pop(field, None)


def _show(
    request: HttpRequest,
    draft: Draft,
    *,
    at: str,
    shown_as: str = "form",
    yaml_form: YamlForm | None = None,
) -> HttpResponse:
    at = at if at in STEP_NAMES else STEP_NAMES[0]
    context = {
        **_frame(draft, at),
        **_side(draft, request),
        "side_problems": deploy_page.problems_of(yaml_form or draft.form),
        "shown_as": shown_as,
        "yaml_form": yaml_form or YamlForm(initial={"yaml": draft_yaml.text_of(draft.data)}),
        "is_partial": is_partial(request),
    }
    status = 200 if is_partial(request) else draft.form.status if draft.form.errors else 200
    parts = {"side": "delivery/_new_side.html"}
    return respond(request, "delivery/new.html", context, parts=parts, status=status)


def _frame(draft: Draft, at: str) -> dict[str, Any]:
    index = STEP_NAMES.index(at)
    step = STEPS[index]
    allowed, rejected = deploy_shares.rows_of(
        draft.advice, draft.shares, chosen=draft.data.get("share", "")
    )
    settings = deploy_settings.settings_of(draft.form, draft.data, draft.cluster)
    tones = ["done"] * index + ["on"] + [""] * (len(STEPS) - index - 1)
    return {
        "team": draft.team,
        "form": draft.form,
        "step": step,
        "step_template": f"delivery/_new_{at}.html",
        "steps": [StepItem(item, tone) for item, tone in zip(STEPS, tones, strict=True)],
        "previous_step": STEPS[index - 1] if index else None,
        "next_step": STEPS[index + 1] if index + 1 < len(STEPS) else None,
        "hidden_fields": [draft.form[name] for name in _FIELDS if name not in step.fields],
        "version": draft.version,
        "versions": draft.versions,
        "chosen_version": draft.data.get("version", ""),
        "engines": deploy_settings.engine_choices(draft.cluster, draft.version),
        "weights": deploy_page.weights_of(draft.version),
        "is_language": draft.data.get("engine") in LLM_ENGINES,
        "settings": settings,
        "groups": deploy_settings.groups_of(settings, draft.data),
        "office_hours_fields": [draft.form[one.field] for one in request_body.OFFICE_HOURS],
        "usual_target": deploy_settings.usual_target(draft.data),
        "sizing": deploy_shares.card_of(draft.advice),
        "shares": allowed,
        "rejected_shares": rejected,
        "shares_reason": _shares_reason(draft),
        "cluster_note": _cluster_note(draft.cluster),
        "address": _address(draft),
    }


def _side(draft: Draft, request: HttpRequest) -> dict[str, Any]:
    checked, problem = deploy_page.preflight_of(draft.user, draft.asked)
    url = request.build_absolute_uri("/api/v1/deployments")
    return {
        "fit": deploy_page.fit_of(checked),
        "preflight": checked,
        "side_problem": problem,
        "cost": deploy_page.cost_card(checked.cost if checked else None),
        "vram": deploy_page.vram_of(draft.advice, draft.share),
        "cold_start": deploy_page.cold_start_of(draft.version, draft.data),
        "manifests": manifests_of_text(checked.manifests) if checked else None,
        "snippets": draft_yaml.snippets(body=request_body.body_of(draft.data), url=url),
    }


def _shares_reason(draft: Draft) -> str:
    if draft.cluster is None:
        return "Choose a cluster first. A platform admin connects clusters under Admin."
    if draft.cluster.is_reachable is False:
        return f"{draft.cluster.name} does not answer: {draft.cluster.last_error}"
    return f"{draft.cluster.name} has no GPU nodes that the portal has seen."


def _cluster_note(cluster: ClusterInfo | None) -> str:
    if cluster is None:
        return ""
    if cluster.is_reachable is False:
        return f"does not answer: {cluster.last_error}"
    return deploy_settings.what_it_has(cluster)


def _address(draft: Draft) -> str:
    gateway = draft.cluster.gateway_url if draft.cluster else ""
    return f"{gateway}/{draft.team.slug}/{draft.data.get('name') or '…'}"
