"""Request a canary: a plan from scratch or from a template, with its time and dollars beside it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from deployments.changes.selectors import available_rollouts
from deployments.changes.services import plan_figures, requests
from deployments.changes.web.canary_form import CanaryForm
from deployments.changes.web.requests import changeable, show_request
from deployments.models import ChangeRequest, Deployment, ModelVersion, RolloutTemplate
from deployments.plans.domain import descriptions
from deployments.plans.domain.rollout_plan import WATCH_SECONDS, PlanKind, PlanSettings
from deployments.plans.domain.steps import Step
from deployments.plans.selectors import plans
from deployments.plans.services import templates as plan_templates
from deployments.plans.web import plan_form
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.states import ChangeKind
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond, target_of

_SIDE = "plan-side"
_MOST_VERSIONS = 100
_LONGEST_ID = 19
_UNUSED = ("config_pbtxt", "readme", "signature", "scan", "checks", "laid_out")


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_canary(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    templates = plan_templates.list_of(actor=user, team=deployment.team)
    form = CanaryForm(
        request.POST or None,
        deployment=deployment,
        versions=_offered(request, user, deployment),
        has_tokens=_has_tokens(deployment),
        initial=_initial(request, deployment, templates),
    )
    is_preview = target_of(request) == _SIDE
    if request.method == "POST" and not is_preview:
        if "keep" in request.POST:
            return _keep(request, user, deployment, form, templates)
        change = form.run(lambda: _request_canary(user, deployment, form))
        if change is not None:
            return show_request(request, change)
    status = form.status if form.is_bound and not is_preview else 200
    return _show(request, deployment, form, templates, status)


def _keep(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    form: CanaryForm,
    templates: list[RolloutTemplate],
) -> HttpResponse:
    kept = form.run(
        lambda: plan_templates.save(
            actor=user,
            team=deployment.team,
            name=form.cleaned_data["keep_as"],
            steps=form.steps_json(),
            plan=form.plan_json(),
        )
    )
    if kept is None:
        return _show(request, deployment, form, templates, form.status)
    messages.success(request, f"“{kept.name}” is saved as a template of {deployment.team.slug}.")
    place = reverse("request-canary", args=[deployment.team.slug, deployment.name])
    return redirect(f"{place}?template={kept.pk}")


def _request_canary(user: User, deployment: Deployment, form: CanaryForm) -> ChangeRequest:
    return requests.request_canary(
        actor=user,
        deployment_id=deployment.pk,
        version_id=int(form.cleaned_data["version"]),
        steps=form.steps_json(),
        comment=form.cleaned_data["comment"],
        plan=form.plan_json(),
        access=form.cleaned_data["access"],
    )


def _offered(request: HttpRequest, user: User, deployment: Deployment) -> list[ModelVersion]:
    """Return the newest ready versions of the same model, without the one that serves, and the one that is named."""
    stable = deployment.stable_revision
    if stable is None:
        return []
    ready = versions.list_ready_versions(
        actor=user, team_slug=deployment.team.slug, model_id=stable.version.model_id
    )
    others = ready.exclude(pk=stable.version_id).defer(*_UNUSED)
    newest = list(others[:_MOST_VERSIONS])
    named = request.POST.get("version") or request.GET.get("version", "")
    is_missing = named not in {str(version.pk) for version in newest}
    if is_missing and named.isascii() and named.isdecimal() and len(named) < _LONGEST_ID:
        newest += others.filter(pk=int(named))
    return newest


def _has_tokens(deployment: Deployment) -> bool:
    stable = deployment.stable_revision
    return stable is not None and stable.spec.get("engine") in LLM_ENGINES


def _initial(
    request: HttpRequest, deployment: Deployment, templates: list[RolloutTemplate]
) -> dict[str, Any]:
    chosen = _chosen(request, templates)
    default = (
        plan_form.DEFAULT_PLAN_OF_TOKENS if _has_tokens(deployment) else plan_form.DEFAULT_PLAN
    )
    return {
        **plan_form.initial_of(plans.plan_of(chosen) if chosen else default),
        "version": request.GET.get("version", ""),
        "access": request.GET.get("access", ""),
        "keep_as": chosen.name if chosen else "",
    }


def _chosen(request: HttpRequest, templates: list[RolloutTemplate]) -> RolloutTemplate | None:
    template_id = request.GET.get("template", "")
    return next((row for row in templates if str(row.pk) == template_id), None)


def _show(
    request: HttpRequest,
    deployment: Deployment,
    form: CanaryForm,
    templates: list[RolloutTemplate],
    status: int,
) -> HttpResponse:
    is_readable = not form.is_bound or form.is_valid()
    steps = _steps_of(form) if is_readable else None
    context = {
        "deployment": deployment,
        "team": deployment.team,
        "form": form,
        "templates": templates,
        "chosen": _chosen(request, templates),
        "kinds": plan_form.kinds(
            off={kind: available_rollouts.why_not(deployment, kind) for kind in PlanKind}
        ),
        "kind": form["kind"].value() or ("" if form["has_plan"].value() else PlanKind.CANARY.value),
        "figures": None
        if steps is None
        else plan_figures.compute_figures(
            deployment, steps, watch_seconds=_watch_of(form), settings=_settings_of(form)
        ),
        "is_blue_green": form["kind"].value() == PlanKind.BLUE_GREEN.value,
        "is_shadow": form["kind"].value() == PlanKind.SHADOW.value,
        "consequence": descriptions.consequence(
            ChangeKind.CANARY,
            deployment=deployment.name,
            version="the candidate",
            is_shadow=form["kind"].value() == PlanKind.SHADOW.value,
        ),
        "address": deployments.url_of(deployment),
        "has_prometheus": bool(deployment.cluster.prometheus_url),
    }
    parts = {_SIDE: "changes/_plan_side.html"}
    return respond(request, "changes/canary.html", context, parts=parts, status=status)


def _watch_of(form: CanaryForm) -> int:
    typed = form.cleaned_data["watch_seconds"] if form.is_bound else form.initial["watch_seconds"]
    return WATCH_SECONDS if typed is None else int(typed)


def _steps_of(form: CanaryForm) -> list[Step]:
    """Return the steps unchecked, so that figures show while a rule across fields is still broken."""
    rows = form.steps_json() if form.is_bound else form.initial["steps"]
    return [Step.model_construct(None, **row) for row in rows]


def _settings_of(form: CanaryForm) -> PlanSettings | None:
    """Return the settings of the plan. None while a field of the plan is wrong."""
    try:
        return PlanSettings.model_validate(
            form.plan_json() if form.is_bound else form.initial["plan"]
        )
    except ValidationError:
        return None
