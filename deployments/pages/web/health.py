"""The tab Quality of a deployment: what is watched after its rollouts, and the switch."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.health.selectors import health as health_views
from deployments.health.services import switch
from deployments.health.web.forms import SwitchForm
from deployments.pages.web import frame
from deployments.serving.selectors import deployments
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only

_PAGE_SIZE = 30


@require_http_methods(["GET", "POST"])
@people_only
def health(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    if request.method == "POST":
        form = SwitchForm(request.POST)
        done = form.run(
            lambda: switch.switch(actor=user, deployment_id=deployment.pk, is_on=form.is_on())
        )
        if done is None:
            refusal = form.refusal.message if form.refusal else "Use the button."
            messages.error(request, refusal)
        else:
            waits = health_views.view_of(deployment).off_requested
            word = form.cleaned_data["watch"]
            messages.success(request, f"{waits}." if waits else f"Watch switched {word}.")
        return redirect("health", team, name)
    records = Paginator(health_views.history_of(deployment), _PAGE_SIZE)
    page = records.get_page(request.GET.get("page", "1"))
    context = {
        "health": health_views.view_of(deployment),
        "page": page,
        "records": page.object_list,
        "can_switch": not deployment.is_retired
        and policy.is_allowed(user, Action.REQUEST_CHANGE, deployment),
    }
    return frame.show(request, user, deployment, "health", context)
