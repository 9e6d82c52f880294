"""Choosing how far rollouts of a team go on by themselves, beside its templates."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from deployments.plans.selectors import auto_promotion as limits
from deployments.plans.services import auto_promotion as plan_auto_promotion
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.ui.access import people_only
from portal.ui.service_form import ServiceForm


class LimitForm(ServiceForm):
    percent = forms.IntegerField(
        label="Automatic promotion limit",
        min_value=0,
        max_value=100,
        error_messages={"required": "Enter a percentage from 0 to 100."},
    )


def context_of(user: User, team: Team) -> dict[str, Any]:
    percent = limits.percent_of(team.pk)
    return {
        "team": team,
        "limit": limits.limit_of(team.pk),
        "limit_percent": percent,
        "limit_form": LimitForm(initial={"percent": percent}),
        "can_limit": policy.is_allowed(user, Action.PROMOTE, team),
    }


@require_POST
@people_only
def choose(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    form = LimitForm(request.POST)
    chosen = form.run(
        lambda: plan_auto_promotion.choose(
            actor=user, team=team, percent=form.cleaned_data["percent"]
        )
    )
    if chosen is None:
        context = {**context_of(user, team), "limit_form": form}
        return render(request, "plans/rollout_limit.html", context, status=form.status)
    messages.success(request, f"Automatic promotion limit set to {chosen}%.")
    return redirect("rollout-templates", slug=slug)
