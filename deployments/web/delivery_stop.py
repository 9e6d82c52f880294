"""Stopping a deployment: at once, by anyone of the team."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.models import Deployment
from deployments.selectors import deployments, serving
from deployments.services import stopping
from deployments.web.request_forms import StopForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only


@require_http_methods(["GET", "POST"])
@people_only
def stop(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.STOP, deployment)
    form = StopForm(request.POST or None)
    if request.method == "POST" and _is_stopped(user, deployment, form):
        messages.success(request, f"{name} is being stopped.")
        return redirect("deployment", team, name)
    context = {
        "deployment": deployment,
        "form": form,
        "address": deployments.url_of(deployment),
        "stats": serving.stats_of(deployment, deployments.revisions_of(deployment)),
    }
    status = form.status if form.is_bound else 200
    return render(request, "delivery/stop.html", context, status=status)


def _is_stopped(user: User, deployment: Deployment, form: StopForm) -> bool:
    stopped = form.run(
        lambda: stopping.stop(
            actor=user, deployment_id=deployment.pk, reason=form.cleaned_data["comment"]
        )
    )
    return stopped is not None
