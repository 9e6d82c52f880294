"""The page where a team's leads choose where its load tests run."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.load_tests.domain.choice import PodChoice
from deployments.load_tests.services import places
from fleet.clusters.selectors import clusters
from portal.accounts import policy, teams
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import definitions
from portal.ui import definition_fields
from portal.ui.access import people_only
from portal.ui.service_form import ServiceForm

_POD = definitions.fields_of(PodChoice)


class PlaceForm(ServiceForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = [(info.name, info.name) for info in clusters.list_clusters()]
        self.fields["cluster"] = forms.ChoiceField(
            label="Cluster",
            required=False,
            choices=[("", "None"), *names],
            help_text="Each version that Triton serves is loaded there once, before it is ready.",
        )
        for name, definition in _POD.items():
            self.fields[name] = definition_fields.required_field(definition)
            self.fields[name].required = not definition.is_required and bool(definition.default)

    @property
    def pod(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in _POD}


@require_http_methods(["GET", "POST"])
@people_only
def choose(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    place = places.read(actor=user, team=team)
    form = PlaceForm(request.POST or None, initial=places.describe(place))
    if request.method == "POST":
        policy.require(user, Action.CHOOSE_LOAD_TESTS, team)
        chosen = form.run(
            lambda: places.choose(
                actor=user,
                team=team,
                cluster_name=form.cleaned_data["cluster"],
                pod=form.pod,
            )
        )
        if chosen is not None:
            messages.success(
                request, f"Load tests now run on {chosen or 'the machine of the portal'}."
            )
            return redirect("load-tests", slug=slug)
    context = {
        "team": team,
        "place": place,
        "form": form,
        "can_choose": policy.is_allowed(user, Action.CHOOSE_LOAD_TESTS, team),
        "manages_team": policy.is_allowed(user, Action.MANAGE_MEMBERS, team),
    }
    return render(request, "load_tests/place.html", context, status=form.status)
