"""Register a version by reference."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.models import ModelVersion
from deployments.registry.services import references
from deployments.registry.services.references import ReferenceDraft
from deployments.registry.web.forms import ReferenceForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def register(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    initial = {"model": request.GET.get("model", "")}
    form = ReferenceForm(request.POST or None, initial=initial)
    if request.method == "POST":
        version = form.run(lambda: _register(user, team, form))
        if version is not None:
            messages.success(request, f"{version.label} registered.")
            return redirect("version", version.team.slug, version.model.name, version.number)
    context = {
        "team": owner,
        "form": form,
        "is_allowed": policy.is_allowed(user, Action.UPLOAD, owner),
    }
    return respond(request, "registry/reference.html", context, status=form.status)


def _register(user: User, team: str, form: ReferenceForm) -> ModelVersion:
    return references.register(
        actor=user,
        team_slug=team,
        model_name=form.cleaned_data["model"],
        draft=ReferenceDraft(
            form.cleaned_data["source_uri"],
            metadata=form.metadata(),
            readme=form.cleaned_data["readme"],
        ),
    )
