"""The read-only tabs of a deployment: overview, revisions, manifests, timeline, logs, cost."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.delivery.services import drift_decisions, live_objects
from deployments.pages.web import cost as page_cost
from deployments.pages.web import frame, tab_data
from deployments.pages.web import overview as page_overview
from deployments.serving.domain.chart_ranges import find_range
from deployments.serving.selectors import deployments
from portal.accounts.models import User
from portal.ui.access import people_only

_OVERVIEW = frame.LiveParts(
    each_poll=("pages/_figures.html", "pages/_overview_now.html"),
    minutely=("pages/_charts.html",),
)
_TIMELINE = frame.LiveParts(each_poll=("pages/_timeline.html",))


@require_GET
@people_only
def overview(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    if frame.is_head_alone(request):
        return frame.show(request, user, deployment, "overview", {})
    context = page_overview.context_of(
        deployment,
        with_charts=frame.needs_charts(request),
        chart_range=find_range(request.GET.get("range", "")),
    )
    return frame.show(request, user, deployment, "overview", context, live=_OVERVIEW)


@require_GET
@people_only
def revisions(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    context = tab_data.revisions_context(
        deployment, before=request.GET.get("from", ""), after=request.GET.get("to", "")
    )
    return frame.show(request, user, deployment, "revisions", context)


@require_GET
@people_only
def manifests(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    comparison = live_objects.compare(actor=user, deployment_id=deployment.pk)
    context = {
        "objects": comparison.objects,
        "unreachable": comparison.problem,
        "drift": drift_decisions.view_of(deployment),
    }
    return frame.show(request, user, deployment, "manifests", context)


@require_GET
@people_only
def timeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    context = tab_data.timeline_context(deployment, page=request.GET.get("page", "1"))
    return frame.show(request, user, deployment, "timeline", context, live=_TIMELINE)


@require_GET
@people_only
def logs(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    choice = tab_data.log_choice_of(
        deployment, pod=request.GET.get("pod", ""), lines=request.GET.get("lines", "")
    )
    log = live_objects.read_log(
        actor=user, deployment_id=deployment.pk, pod=choice.chosen, lines=choice.lines
    )
    context = {**choice.context(request.path), "log": log.text, "problem": log.problem}
    parts = {"log": "pages/_log_text.html"}
    return frame.show(request, user, deployment, "logs", context, parts=parts)


@require_GET
@people_only
def cost(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    context = page_cost.context_of(deployment)
    return frame.show(request, user, deployment, "cost", context)
