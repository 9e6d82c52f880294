"""Decide what happens to drift of a deployment."""

from __future__ import annotations

from typing import ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from deployments.delivery.services import drift_decisions
from deployments.serving.selectors import deployments
from deployments.states import DriftPolicy
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.service_form import ServiceForm


class DriftForm(ServiceForm):
    """The decision below the edits."""

    CHOICES: ClassVar = ("re-apply", "adopt", "always re-apply", "always hold")

    choice = forms.ChoiceField(choices=[(name, name) for name in CHOICES])


@require_POST
@people_only
def choose(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    form = DriftForm(request.POST)
    done = form.run(lambda: _choose(user, deployment.pk, form.cleaned_data["choice"]))
    if done is None:
        refusal = form.refusal.message if form.refusal else "Choose one of the buttons."
        messages.error(request, refusal)
        return redirect("manifests", team, name)
    messages.success(request, done)
    return redirect("manifests", team, name)


def _choose(user: User, deployment_id: int, choice: str) -> str:
    if choice == "re-apply":
        drift_decisions.re_apply(actor=user, deployment_id=deployment_id)
        return "Reverting to the approved manifests."
    if choice == "adopt":
        change = drift_decisions.adopt(actor=user, deployment_id=deployment_id)
        return f"Request {change.pk} sent. Waiting for an approver."
    to = DriftPolicy.HOLD if choice == "always hold" else DriftPolicy.RE_APPLY
    changed = drift_decisions.set_policy(actor=user, deployment_id=deployment_id, to=to)
    if changed.drift_policy != to:
        return "Request sent. Drift is held once it is approved, like a change."
    return {
        DriftPolicy.HOLD: "Later drift is held for review.",
        DriftPolicy.RE_APPLY: "Later drift is reverted automatically.",
    }[to]
