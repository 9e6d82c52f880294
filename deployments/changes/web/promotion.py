"""The evidence of a deployment in its environment, and where its version can go next."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from deployments.changes.services import promotions
from deployments.environments.web import cards
from deployments.serving.selectors import deployments
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only


@require_safe
@people_only
def promote(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, deployment)
    preview = promotions.preview(actor=user, deployment_id=deployment.pk)
    context = {
        "deployment": deployment,
        "promotion": preview,
        "card": cards.card_of(preview.evidence.to_json()) if preview.evidence else None,
    }
    return render(request, "changes/promote.html", context)
