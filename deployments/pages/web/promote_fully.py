"""Confirm a full promotion, which skips the remaining steps."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from deployments.rollouts.selectors import rollouts
from deployments.rollouts.web import activity
from deployments.serving.selectors import deployments, statistics
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict
from portal.ui.access import people_only


@require_GET
@people_only
def confirm(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    """Show what a full promotion moves. The form posts to the rollout with the evidence shown here."""
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    rollout = rollouts.current(deployment)
    if rollout is None:
        raise Conflict(f"{deployment} has no rollout to promote.", code="rollout_phase")
    policy.require(user, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    view = rollouts.view_of(actor=user, rollout=rollout)
    if view.has_all_requests:
        # It would move nothing, and no step is left to skip.
        return redirect("rollout", team=team, name=name)
    figures = statistics.figures_of([deployment])[deployment.pk]
    rate = figures.requests_per_second
    context = {
        "deployment": deployment,
        "rollout": rollout,
        "view": view,
        "verdict": activity.verdict_of(view),
        "no_full_promotion": activity.why_no_full_promotion(rollout, view),
        "rate": rate,
        "moving_rate": None if rate is None else rate * (100 - view.requested_weight) / 100,
        "skipped": [step for step in view.steps if step.state == "ahead"],
    }
    return render(request, "pages/promote_fully.html", context)
