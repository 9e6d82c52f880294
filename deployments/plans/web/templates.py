"""Pages of a team's rollout plan templates: list, create, edit and delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from deployments.models import RolloutTemplate
from deployments.plans.domain import descriptions, presets
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.plans.selectors import plans
from deployments.plans.services import templates
from deployments.plans.web import auto_promotion, plan_form, stairs
from deployments.plans.web.plan_form import TemplateForm
from deployments.plans.web.stairs import Stair
from portal.accounts import policy, teams
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.definitions.counts import format_count
from portal.ui.access import people_only


@dataclass(frozen=True, slots=True)
class StepLine:
    weight: int
    conditions: str
    then: str


@dataclass(frozen=True, slots=True)
class TemplateItem:
    row: RolloutTemplate
    kind: str
    steps: tuple[StepLine, ...]
    guards: str
    move_alias: str


@require_GET
@people_only
def template_list(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    rows = templates.list_of(actor=user, team=team)
    context = {
        **auto_promotion.context_of(user, team),
        "items": [_item(row) for row in rows],
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, team),
        "manages_team": policy.is_allowed(user, Action.MANAGE_MEMBERS, team),
    }
    return render(request, "plans/rollout_templates.html", context)


@require_http_methods(["GET", "POST"])
@people_only
def edit_template(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    """Edit a new template, or begin with the one at `?template=`."""
    team = teams.get_visible(actor=user, slug=slug)
    policy.require(user, Action.REQUEST_CHANGE, team)
    template_id = request.GET.get("template", "")
    begun = None
    if template_id.isdecimal():
        begun = templates.get(actor=user, team=team, template_id=int(template_id))
    form = TemplateForm(request.POST or None, initial=_initial(begun))
    if request.method == "POST":
        kept = form.run(
            lambda: templates.save(
                actor=user,
                team=team,
                name=form.cleaned_data["keep_as"],
                steps=form.steps_json(),
                plan=form.plan_json(),
            )
        )
        if kept is not None:
            messages.success(request, f"Template “{kept.name}” saved.")
            return redirect("rollout-templates", slug=slug)
    context = {
        "team": team,
        "form": form,
        "begun": begun,
        "kinds": plan_form.kinds(),
        "kind": form["kind"].value(),
        "stairs": [] if form.is_bound else _draw(form.initial["plan"]),
    }
    return render(request, "plans/rollout_template.html", context, status=form.status)


@require_POST
@people_only
def remove(request: HttpRequest, user: User, slug: str, template_id: int) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    templates.remove(actor=user, team=team, template_id=template_id)
    messages.success(request, "Template deleted. Existing rollouts are not affected.")
    return redirect("rollout-templates", slug=slug)


def _draw(plan: RolloutPlan) -> list[Stair]:
    return stairs.list_stairs(plan.steps, plan.watched_seconds)


def _initial(begun: RolloutTemplate | None) -> dict[str, Any]:
    if begun is None:
        return plan_form.initial_of(presets.DEFAULT.build_plan())
    return {**plan_form.initial_of(plans.plan_of(begun)), "keep_as": begun.name}


def _item(row: RolloutTemplate) -> TemplateItem:
    plan = plans.plan_of(row)
    labels = {name: label for name, label, _ in plan_form.KINDS}
    return TemplateItem(
        row=row,
        kind=labels[plan.kind.value],
        steps=tuple(_line(step) for step in plan.steps),
        guards=", ".join(plan.guards.names),
        move_alias=plan.move_alias,
    )


def _line(step: Step) -> StepLine:
    needs = []
    if step.soak_seconds:
        needs.append(descriptions.format_duration(step.soak_seconds))
    if step.min_requests:
        needs.append(format_count(step.min_requests, "request"))
    then = "auto-promote" if step.auto_promote else "manual promotion"
    return StepLine(step.weight, ", ".join(needs) or "no wait", then)
