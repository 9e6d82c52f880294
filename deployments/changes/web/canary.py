"""Request a canary: a plan by name, from a template or customised, with its time and dollars beside it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from deployments.changes.selectors import available_rollouts
from deployments.changes.services import plan_figures, requests
from deployments.changes.services.plan_figures import PlanInputs
from deployments.changes.web import plan_choices
from deployments.changes.web.canary_form import CanaryForm
from deployments.changes.web.plan_choices import OfferedPlan
from deployments.changes.web.requests import changeable, show_request
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.plans.domain import descriptions, presets
from deployments.plans.domain.rollout_plan import WATCH_SECONDS, PlanKind, PlanSettings, RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.plans.services import templates as plan_templates
from deployments.plans.web import plan_form, plan_rows, stairs
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
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
    offered = plan_choices.list_offered(deployment, templates)
    is_preview = target_of(request) == _SIDE
    is_filling = _is_plan_exchanged(request.POST) and (is_preview or "fill" in request.POST)
    form = _form(request, user, deployment, offered, is_filling=is_filling)
    if form.is_bound and not is_preview:
        if "keep" in request.POST:
            return _keep(request, user, deployment, form, offered)
        change = form.run(lambda: _request_canary(user, deployment, form))
        if change is not None:
            return show_request(request, change)
    status = form.status if form.is_bound and not is_preview else 200
    return _show(request, deployment, form, offered, status, is_filled=is_filling)


def _form(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    offered: list[OfferedPlan],
    *,
    is_filling: bool,
) -> CanaryForm:
    """Return the form. What was posted is kept, but for the values of a plan that was exchanged for another."""
    options: dict[str, Any] = {
        "deployment": deployment,
        "offered": offered,
        "versions": _offered_versions(request, deployment, user),
        "has_tokens": plan_choices.count_tokens(deployment),
    }
    chosen = _chosen(request, offered)
    if is_filling and chosen is not None:
        return CanaryForm(None, initial=_initial_filled(request.POST, offered, chosen), **options)
    if request.method == "POST":
        return CanaryForm(request.POST, **options)
    return CanaryForm(None, initial=_initial(request, chosen or offered[0]), **options)


def _is_plan_exchanged(posted: QueryDict) -> bool:
    return bool(posted.get("preset")) and posted["preset"] != posted.get("filled", "")


def _chosen(request: HttpRequest, offered: list[OfferedPlan]) -> OfferedPlan | None:
    if request.method == "POST":
        return plan_choices.find_offered(offered, request.POST.get("preset", ""))
    template_id = request.GET.get("template", "")
    named = f"template-{template_id}" if template_id else request.GET.get("preset", "")
    default = plan_choices.find_offered(offered, presets.DEFAULT.name)
    return plan_choices.find_offered(offered, named) or default


def _initial(request: HttpRequest, chosen: OfferedPlan) -> dict[str, Any]:
    is_template = plan_choices.is_template(chosen)
    return {
        **plan_form.initial_of(chosen.plan),
        "preset": chosen.value,
        "version": request.GET.get("version", ""),
        "access": request.GET.get("access", ""),
        "keep_as": chosen.label if is_template else "",
    }


def _initial_filled(
    posted: QueryDict, offered: list[OfferedPlan], chosen: OfferedPlan
) -> dict[str, Any]:
    before = plan_choices.find_offered(offered, posted.get("filled", ""))
    kept = plan_form.keep_typed(posted, before.plan if before else None)
    return {
        **plan_form.initial_of(chosen.plan),
        **kept,
        "preset": chosen.value,
        **{name: posted.get(name, "") for name in ("version", "access", "comment", "keep_as")},
    }


def _keep(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    form: CanaryForm,
    offered: list[OfferedPlan],
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
        return _show(request, deployment, form, offered, form.status)
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


def _offered_versions(
    request: HttpRequest, deployment: Deployment, user: User
) -> list[ModelVersion]:
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


def _show(
    request: HttpRequest,
    deployment: Deployment,
    form: CanaryForm,
    offered: list[OfferedPlan],
    status: int,
    *,
    is_filled: bool = False,
) -> HttpResponse:
    is_readable = not form.is_bound or form.is_valid()
    steps = _steps_of(form) if is_readable else None
    inputs = plan_figures.read_inputs(deployment)
    figures = (
        None
        if steps is None
        else plan_figures.compute_figures(
            deployment,
            steps,
            watch_seconds=_watch_of(form),
            settings=_settings_of(form),
            inputs=inputs,
        )
    )
    drawn = (
        stairs.list_stairs(steps, _watch_of(form), seconds=[step.seconds for step in figures.steps])
        if steps is not None and figures is not None
        else []
    )
    is_whole = target_of(request) != _SIDE
    context = {
        "deployment": deployment,
        "team": deployment.team,
        "form": form,
        "is_filled": is_filled,
        "choices": _describe_choices(deployment, offered, inputs) if is_whole else (),
        "traffic": plan_choices.describe_traffic(inputs),
        "kinds": plan_form.kinds(
            off={kind: available_rollouts.why_not(deployment, kind) for kind in PlanKind}
        ),
        "kind": form["kind"].value() or ("" if form["has_plan"].value() else PlanKind.CANARY.value),
        "figures": figures,
        "stairs": drawn,
        "steps_summary": _summarize_steps(form, drawn),
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
    parts = {_SIDE: "changes/_plan_side_swap.html"}
    return respond(request, "changes/canary.html", context, parts=parts, status=status)


def _describe_choices(
    deployment: Deployment, offered: list[OfferedPlan], inputs: PlanInputs
) -> list[plan_choices.PlanChoice]:
    return [plan_choices.describe_choice(deployment, each, inputs) for each in offered]


def _summarize_steps(form: CanaryForm, drawn: list[stairs.Stair]) -> str:
    if form["kind"].value() == PlanKind.BLUE_GREEN.value:
        return "no traffic until someone promotes it"
    return stairs.summarize(drawn) or "check the marked fields"


def _plan_of(form: CanaryForm) -> RolloutPlan:
    plan: RolloutPlan = form.initial["plan"]
    return plan


def _watch_of(form: CanaryForm) -> int:
    if not form.is_bound:
        return _plan_of(form).watched_seconds
    typed = plan_rows.seconds_of(form.cleaned_data["watch_minutes"])
    return WATCH_SECONDS if typed is None else typed


def _steps_of(form: CanaryForm) -> list[Step]:
    """Return the steps unchecked, so that figures show while a rule across fields is still broken."""
    if not form.is_bound:
        return list(_plan_of(form).steps)
    return [Step.model_construct(None, **row) for row in form.steps_json()]


def _settings_of(form: CanaryForm) -> PlanSettings | None:
    """Return the settings of the plan. None while a field of the plan is wrong."""
    if not form.is_bound:
        return _plan_of(form)
    try:
        return PlanSettings.model_validate(form.plan_json())
    except ValidationError:
        return None
