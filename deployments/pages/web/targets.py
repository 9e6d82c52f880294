"""The tab Targets of a deployment: error budgets, burn rates, and the form that sets them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.models import Deployment
from deployments.pages.web import frame
from deployments.serving.selectors import deployments
from deployments.states import TargetMetric
from deployments.targets.selectors import targets as target_views
from deployments.targets.services import targets as service
from deployments.targets.web import rows
from deployments.targets.web.forms import RemoveForm, TargetForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only


@require_http_methods(["GET", "POST"])
@people_only
def targets(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    if "remove" in request.POST:
        return _remove(request, user, deployment)
    form = TargetForm(request.POST or None)
    if request.method == "POST":
        row = form.run(
            lambda: service.set_target(actor=user, deployment_id=deployment.pk, draft=form.draft())
        )
        if row is not None:
            messages.success(request, "Target set.")
            return redirect("targets", team, name)
    context = {
        "targets": [rows.row_of(view) for view in target_views.list_of(deployment)],
        "form": form,
        "may_set": not deployment.is_retired
        and policy.is_allowed(user, Action.REQUEST_CHANGE, deployment),
    }
    return frame.show(request, user, deployment, "targets", context, status=form.status)


def _remove(request: HttpRequest, user: User, deployment: Deployment) -> HttpResponse:
    form = RemoveForm(request.POST)

    def run() -> bool:
        metric = TargetMetric(form.cleaned_data["remove"])
        service.remove(actor=user, deployment_id=deployment.pk, metric=metric)
        return True

    if form.run(run):
        messages.success(request, "Target removed.")
    else:
        messages.error(request, form.refusal.message if form.refusal else "Use the button.")
    return redirect("targets", deployment.team.slug, deployment.name)
