"""Asking for a roll back, other replicas, a start or a retirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.domain import wording
from deployments.domain.states import ChangeKind
from deployments.models import ChangeRequest, Deployment
from deployments.selectors import deployments, serving
from deployments.services import changes
from deployments.web.request_forms import RetireForm, RollBackForm, ScaleForm
from deployments.web.service_forms import CommentForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict
from portal.ui.access import people_only


@dataclass(frozen=True, slots=True)
class Ask:
    """The words of a request page; the form's own fields are in `_<kind>_fields.html`."""

    kind: ChangeKind
    title: str
    button: str
    next_steps: Sequence[str]
    button_tone: str = "primary"


ROLL_BACK = Ask(
    ChangeKind.ROLL_BACK,
    "Request a roll back",
    "Request this roll back",
    ("The earlier revision starts again", "All requests move to it once it is ready"),
)
SCALE = Ask(
    ChangeKind.SCALE,
    "Request other replicas",
    "Request these replicas",
    ("Replicas start or end until it is so", "No traffic moves and nothing new starts beside it"),
)
START = Ask(
    ChangeKind.START,
    "Request a start",
    "Request this start",
    ("The stable revision starts again", "Its address answers once it is ready"),
)
RETIRE = Ask(
    ChangeKind.RETIRE,
    "Request retirement",
    "Request retirement",
    ("The route is removed, then the pods", "GPUs become free"),
    button_tone="danger",
)


@require_http_methods(["GET", "POST"])
@people_only
def request_roll_back(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    earlier = [
        r for r in deployments.history_of(deployment) if r.pk != deployment.stable_revision_id
    ]
    wanted = {"revision": request.GET.get("revision", "")}
    form = RollBackForm(request.POST or None, revisions=earlier, initial=wanted)
    if request.method == "POST":
        change = form.run(lambda: _ask_roll_back(user, deployment, form))
        if change is not None:
            return asked(request, change)
    return _show(request, deployment, form, ROLL_BACK)


@require_http_methods(["GET", "POST"])
@people_only
def request_scale(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    [stable, *_] = deployments.revisions_of(deployment)
    now = {"min_replicas": stable.spec.min_replicas, "max_replicas": stable.spec.max_replicas}
    form = ScaleForm(request.POST or None, initial=now)
    if request.method == "POST":
        change = form.run(
            lambda: changes.request_scale(
                actor=user, deployment_id=deployment.pk, **_known(form, *now, "comment")
            )
        )
        if change is not None:
            return asked(request, change)
    return _show(request, deployment, form, SCALE, {"spec": stable.spec})


@require_http_methods(["GET", "POST"])
@people_only
def request_start(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    form = CommentForm(request.POST or None)
    if request.method == "POST":
        change = form.run(
            lambda: changes.request_start(
                actor=user, deployment_id=deployment.pk, **_known(form, "comment")
            )
        )
        if change is not None:
            return asked(request, change)
    [stable, *_] = deployments.revisions_of(deployment)
    return _show(request, deployment, form, START, {"stable": stable})


def _known(form: CommentForm, *names: str) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in names}


@require_http_methods(["GET", "POST"])
@people_only
def request_retire(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    form = RetireForm(request.POST or None, deployment=deployment)
    if request.method == "POST":
        change = form.run(lambda: _ask_retire(user, deployment, form))
        if change is not None:
            return asked(request, change)
    stats = serving.stats_of(deployment, deployments.revisions_of(deployment))
    return _show(request, deployment, form, RETIRE, {"stats": stats})


def _ask_roll_back(user: User, deployment: Deployment, form: RollBackForm) -> ChangeRequest:
    return changes.request_roll_back(
        actor=user,
        deployment_id=deployment.pk,
        revision_number=int(form.cleaned_data["revision"]),
        comment=form.cleaned_data["comment"],
    )


def _ask_retire(user: User, deployment: Deployment, form: RetireForm) -> ChangeRequest:
    return changes.request_retire(
        actor=user, deployment_id=deployment.pk, comment=form.cleaned_data["comment"]
    )


def changeable(user: User, team: str, name: str) -> Deployment:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, deployment)
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} serves nothing yet; its first deployment comes first.")
    return deployment


def asked(request: HttpRequest, change: ChangeRequest) -> HttpResponse:
    messages.success(request, "The request is with your team's leads.")
    return redirect("change", change_id=change.pk)


def _show(
    request: HttpRequest,
    deployment: Deployment,
    form: CommentForm,
    ask: Ask,
    extra: dict[str, Any] | None = None,
) -> HttpResponse:
    context = {
        "deployment": deployment,
        "form": form,
        "title": ask.title,
        "consequence": wording.consequence(ask.kind, deployment=deployment.name, version=""),
        "next_steps": ask.next_steps,
        "button": ask.button,
        "button_tone": ask.button_tone,
        "fields": f"delivery/_{ask.kind.value}_fields.html",
        "address": deployments.url_of(deployment),
        **(extra or {}),
    }
    status = form.status if form.is_bound else 200
    return render(request, "delivery/change_request.html", context, status=status)
