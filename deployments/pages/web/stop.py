"""Stop a deployment, immediately or with a change request."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.services import requests
from deployments.changes.web.forms import StopForm
from deployments.changes.web.requests import show_request
from deployments.lifecycle.services import stop as lifecycle_stop
from deployments.models import Deployment
from deployments.serving.selectors import deployments, statistics
from deployments.serving.services import stopping
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import keeps_input, people_only


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def stop(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.STOP, deployment)
    form = StopForm(request.POST or None)
    done = _stop(request, user, form, deployment) if request.method == "POST" else None
    if done is not None:
        return done
    context = {
        "deployment": deployment,
        "form": form,
        "address": deployments.url_of(deployment),
        "figures": statistics.figures_of([deployment])[deployment.pk],
        "needs_approval": stopping.needs_approval(deployment),
    }
    status = form.status if form.is_bound else 200
    return render(request, "pages/stop.html", context, status=status)


def _stop(
    request: HttpRequest, user: User, form: StopForm, deployment: Deployment
) -> HttpResponse | None:
    """Stop the deployment, or request it where that needs approval. None if the service refused; the form has
    the reason.
    """
    if stopping.needs_approval(deployment):
        change = form.run(
            lambda: requests.request_stop(
                actor=user, deployment_id=deployment.pk, comment=form.cleaned_data["comment"]
            )
        )
        return None if change is None else show_request(request, change)
    stopped = form.run(
        lambda: lifecycle_stop.stop(
            actor=user, deployment_id=deployment.pk, reason=form.cleaned_data["comment"]
        )
    )
    if stopped is None:
        return None
    messages.success(request, f"{deployment.name} is being stopped.")
    return redirect("deployment", deployment.team.slug, deployment.name)
