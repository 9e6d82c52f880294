"""The read-only tabs of a deployment: overview, revisions, manifests, timeline, logs, cost."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.pages.web import cost as page_cost
from deployments.pages.web import frame, tab_data
from deployments.pages.web import logs as page_logs
from deployments.pages.web import manifests as page_manifests
from deployments.pages.web import overview as page_overview
from deployments.serving.domain.chart_ranges import find_range
from deployments.serving.selectors import deployments
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.htmx import target_of

_OVERVIEW = frame.LiveParts(
    each_poll=("pages/_figures.html", "pages/_overview_now.html"),
    minutely=("pages/_charts.html",),
)
# The element that follows a log.
_LOG = "logs"
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
    context = page_manifests.build_context(user, deployment)
    return frame.show(request, user, deployment, "manifests", context)


@require_GET
@people_only
def timeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    query = request.GET
    context = tab_data.timeline_context(
        deployment, page=query.get("page", "1"), kind=query.get("kind", "")
    )
    return frame.show(request, user, deployment, "timeline", context, live=_TIMELINE)


@require_GET
@people_only
def logs(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    query = page_logs.LogQuery.read(request.GET)
    logs = page_logs.read_logs(user, deployment, query)
    if request.GET.get("download"):
        return page_logs.respond_with_file(deployment, query, logs)
    context = page_logs.build_context(query, logs, request.path)
    if target_of(request) != _LOG:
        context |= page_logs.build_event_context(user, deployment, logs)
    parts = {_LOG: "pages/_log_text.html"}
    return frame.show(request, user, deployment, "logs", context, parts=parts)


@require_GET
@people_only
def cost(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    context = page_cost.context_of(deployment)
    return frame.show(request, user, deployment, "cost", context)
