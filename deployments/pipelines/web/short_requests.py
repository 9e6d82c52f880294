"""Stopping, starting and retiring a pipeline: one page each, with a reason and a button."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.web.requests import show_request
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import requests
from deployments.pipelines.services import stop as pipeline_stop
from deployments.serving.services import stopping
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only
from portal.ui.service_form import CommentForm


@dataclass(frozen=True, slots=True)
class _RequestPage:
    """A page with a reason and a button."""

    verb: str
    consequence: str
    button: str
    tone: str


_RETIRE = _RequestPage(
    "Retire",
    "Removes the address and its router once approved. The deployments behind it stay.",
    "Request retirement",
    "danger",
)
_START = _RequestPage(
    "Start", "Starts the same steps again once approved.", "Request start", "primary"
)
_STOP = _RequestPage(
    "Stop",
    "Stops at once, without approval. The address returns 404. The deployments behind it keep serving.",
    "Stop pipeline",
    "danger",
)
_REQUEST_STOP = _RequestPage(
    "Stop",
    "Stops once approved: it is in production. The address then returns 404. "
    "The deployments behind it keep serving.",
    "Request stop",
    "danger",
)


@require_http_methods(["GET", "POST"])
@people_only
def retire_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    return _request(request, user, changeable(user, team, name), _RETIRE, requests.request_retire)


@require_http_methods(["GET", "POST"])
@people_only
def start_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    return _request(request, user, changeable(user, team, name), _START, requests.request_start)


@require_http_methods(["GET", "POST"])
@people_only
def stop_pipeline(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    def stop(*, actor: User, pipeline_id: int, comment: str) -> Pipeline:
        return pipeline_stop.stop(actor=actor, pipeline_id=pipeline_id, reason=comment)

    pipeline = changeable(user, team, name)
    if stopping.needs_approval(pipeline):
        return _request(request, user, pipeline, _REQUEST_STOP, requests.request_stop)
    return _request(request, user, pipeline, _STOP, stop)


def _request(
    request: HttpRequest,
    user: User,
    pipeline: Pipeline,
    page: _RequestPage,
    send: Callable[..., Pipeline | ChangeRequest],
) -> HttpResponse:
    form = CommentForm(request.POST or None)
    if request.method == "POST":
        made = form.run(
            lambda: send(actor=user, pipeline_id=pipeline.pk, comment=form.cleaned_data["comment"])
        )
        if isinstance(made, ChangeRequest):
            return show_request(request, made)
        if made is not None:
            messages.success(request, f"{pipeline.name} is stopped.")
            return redirect("pipeline", team=pipeline.team.slug, name=pipeline.name)
    context = {"pipeline": pipeline, "form": form, "page": page, "url": selectors.url_of(pipeline)}
    return render(request, "pipelines/request.html", context, status=form.status)


def changeable(user: User, team: str, name: str) -> Pipeline:
    pipeline = selectors.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, pipeline)
    return pipeline
