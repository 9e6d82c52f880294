"""Asking for a canary, a roll back or a retirement."""

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
from deployments.selectors import deployments, registry, serving
from deployments.services import changes
from deployments.web.request_forms import CanaryForm, RetireForm, RollBackForm
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


CANARY = Ask(
    ChangeKind.CANARY,
    "Request a canary",
    "Request this canary",
    ("The candidate starts and must become ready", "The first step's share moves to it"),
)
ROLL_BACK = Ask(
    ChangeKind.ROLL_BACK,
    "Request a roll back",
    "Request this roll back",
    ("The earlier revision starts again", "All requests move to it once it is ready"),
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
def request_canary(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = _changeable(user, team, name)
    model = deployment.stable_revision.version.model if deployment.stable_revision else None
    ready = registry.list_ready_versions(actor=user, team_slug=team)
    offered = [
        v for v in ready if model and v.model_id == model.pk and not _serves(deployment, v.pk)
    ]
    form = CanaryForm(
        request.POST or None, versions=offered, initial={"version": request.GET.get("version", "")}
    )
    if request.method == "POST":
        change = form.run(lambda: _ask_canary(user, deployment, form))
        if change is not None:
            return _asked(request, change)
    return _show(request, deployment, form, CANARY)


@require_http_methods(["GET", "POST"])
@people_only
def request_roll_back(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = _changeable(user, team, name)
    earlier = [
        r for r in deployments.history_of(deployment) if r.pk != deployment.stable_revision_id
    ]
    wanted = {"revision": request.GET.get("revision", "")}
    form = RollBackForm(request.POST or None, revisions=earlier, initial=wanted)
    if request.method == "POST":
        change = form.run(lambda: _ask_roll_back(user, deployment, form))
        if change is not None:
            return _asked(request, change)
    return _show(request, deployment, form, ROLL_BACK)


@require_http_methods(["GET", "POST"])
@people_only
def request_retire(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = _changeable(user, team, name)
    form = RetireForm(request.POST or None, deployment=deployment)
    if request.method == "POST":
        change = form.run(lambda: _ask_retire(user, deployment, form))
        if change is not None:
            return _asked(request, change)
    stats = serving.stats_of(deployment, deployments.revisions_of(deployment))
    return _show(request, deployment, form, RETIRE, {"stats": stats})


def _ask_canary(user: User, deployment: Deployment, form: CanaryForm) -> ChangeRequest:
    return changes.request_canary(
        actor=user,
        deployment_id=deployment.pk,
        version_id=int(form.cleaned_data["version"]),
        steps=form.steps(),
        comment=form.cleaned_data["comment"],
    )


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


def _changeable(user: User, team: str, name: str) -> Deployment:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, deployment)
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} serves nothing yet; its first deployment comes first.")
    return deployment


def _serves(deployment: Deployment, version_id: int) -> bool:
    stable = deployment.stable_revision
    return stable is not None and stable.version_id == version_id


def _asked(request: HttpRequest, change: ChangeRequest) -> HttpResponse:
    messages.success(request, "The request is with your team's leads.")
    return redirect("change", change_id=change.pk)


def _show(
    request: HttpRequest,
    deployment: Deployment,
    form: CommentForm,
    ask: Ask,
    extra: dict[str, Any] | None = None,
) -> HttpResponse:
    words = {ChangeKind.CANARY: "the candidate", ChangeKind.ROLL_BACK: "", ChangeKind.RETIRE: ""}
    context = {
        "deployment": deployment,
        "form": form,
        "title": ask.title,
        "consequence": wording.consequence(
            ask.kind, deployment=deployment.name, version=words[ask.kind]
        ),
        "next_steps": ask.next_steps,
        "button": ask.button,
        "button_tone": ask.button_tone,
        "fields": f"delivery/_{ask.kind.value}_fields.html",
        "address": deployments.url_of(deployment),
        **(extra or {}),
    }
    status = form.status if form.is_bound else 200
    return render(request, "delivery/change_request.html", context, status=status)
