"""Request a roll back, other replicas, a start or a retirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.approvals.selectors import earlier_approvals
from deployments.changes.selectors import roll_backs
from deployments.changes.services import requests
from deployments.changes.web import field_diff
from deployments.changes.web.forms import RetireForm, RollBackForm, ScaleForm
from deployments.models import ChangeRequest, Deployment
from deployments.plans.domain import descriptions
from deployments.serving.selectors import alias_returns, deployments, revision_roles, statistics
from deployments.states import ChangeKind, ChangeState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import CommentForm


@dataclass(frozen=True, slots=True)
class RequestPage:
    """The texts of a request page; the form's own fields are in `_<kind>_fields.html`."""

    kind: ChangeKind
    title: str
    button: str
    next_steps: Sequence[str]
    button_tone: str = "primary"


ROLL_BACK = RequestPage(
    ChangeKind.ROLL_BACK,
    "Roll back",
    "Request roll back",
    ("The earlier revision starts", "All requests move to it once it is ready"),
)
# To a revision whose approvals count again.
ROLL_BACK_NOW = replace(ROLL_BACK, button="Roll back", button_tone="danger")
SCALE = RequestPage(
    ChangeKind.SCALE,
    "Change replicas",
    "Request change",
    ("Replicas start or stop to match", "Traffic stays on the same revision"),
)
START = RequestPage(
    ChangeKind.START,
    "Start",
    "Request start",
    ("The stable revision starts", "The endpoint responds once it is ready"),
)
RETIRE = RequestPage(
    ChangeKind.RETIRE,
    "Retire",
    "Request retirement",
    ("The route is removed, then the pods", "Its GPUs are released"),
    button_tone="danger",
)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_roll_back(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    earlier = revision_roles.list_restorable(deployment)
    previous = earlier_approvals.previously_serving(deployment)
    first = "" if previous is None else str(previous.number)
    initial = {"revision": request.GET.get("revision", first)}
    form = RollBackForm(request.POST or None, revisions=earlier, initial=initial)
    if request.method == "POST":
        change = form.run(lambda: _send_roll_back(user, deployment, form))
        if change is not None and change.state != ChangeState.SUBMITTED:
            messages.success(request, f"Rolling back to r{change.restored_number}.")
            return redirect("deployment", team, name)
        if change is not None:
            return show_request(request, change)
    chosen = str(form["revision"].value() or "")
    restored = next((r for r in earlier if str(r.number) == chosen), None)
    consequence = descriptions.consequence(
        ChangeKind.ROLL_BACK,
        deployment=deployment.name,
        restored=restored.number if restored else 0,
    )
    if restored is None:
        return _show(request, deployment, form, ROLL_BACK, {"consequence": consequence})
    moved = alias_returns.describe(alias_returns.returns_to(deployment, restored))
    preview = roll_backs.preview(user, deployment, restored)
    page = ROLL_BACK if preview.earlier is None else ROLL_BACK_NOW
    extra = {
        "consequence": f"{consequence} {moved}".strip(),
        "diff": field_diff.from_lines(preview.diff),
        "earlier": preview.earlier,
        "restored": restored,
    }
    return _show(request, deployment, form, page, extra)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_scale(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    [stable, *_] = deployments.revisions_of(deployment)
    now = {"min_replicas": stable.spec.min_replicas, "max_replicas": stable.spec.max_replicas}
    form = ScaleForm(request.POST or None, initial=now)
    if request.method == "POST":
        change = form.run(
            lambda: requests.request_scale(
                actor=user, deployment_id=deployment.pk, **_known(form, *now, "comment")
            )
        )
        if change is not None:
            return show_request(request, change)
    return _show(request, deployment, form, SCALE, {"spec": stable.spec})


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_start(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    form = CommentForm(request.POST or None)
    if request.method == "POST":
        change = form.run(
            lambda: requests.request_start(
                actor=user, deployment_id=deployment.pk, **_known(form, "comment")
            )
        )
        if change is not None:
            return show_request(request, change)
    [stable, *_] = deployments.revisions_of(deployment)
    return _show(request, deployment, form, START, {"stable": stable})


def _known(form: CommentForm, *names: str) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in names}


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_retire(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = changeable(user, team, name)
    form = RetireForm(request.POST or None, deployment=deployment)
    if request.method == "POST":
        change = form.run(lambda: _send_retirement(user, deployment, form))
        if change is not None:
            return show_request(request, change)
    stats = statistics.stats_of(deployment, deployments.revisions_of(deployment))
    return _show(request, deployment, form, RETIRE, {"stats": stats})


def _send_roll_back(user: User, deployment: Deployment, form: RollBackForm) -> ChangeRequest:
    return requests.request_roll_back(
        actor=user,
        deployment_id=deployment.pk,
        revision_number=int(form.cleaned_data["revision"]),
        comment=form.cleaned_data["comment"],
    )


def _send_retirement(user: User, deployment: Deployment, form: RetireForm) -> ChangeRequest:
    return requests.request_retire(
        actor=user, deployment_id=deployment.pk, comment=form.cleaned_data["comment"]
    )


def changeable(user: User, team: str, name: str) -> Deployment:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    policy.require(user, Action.REQUEST_CHANGE, deployment)
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} is not serving yet. Wait for its first deployment.")
    return deployment


def show_request(request: HttpRequest, change: ChangeRequest) -> HttpResponse:
    messages.success(request, "Request sent. Waiting for an approver.")
    return redirect("change", change_id=change.pk)


def _show(
    request: HttpRequest,
    deployment: Deployment,
    form: CommentForm,
    page: RequestPage,
    extra: dict[str, Any] | None = None,
) -> HttpResponse:
    context = {
        "deployment": deployment,
        "form": form,
        "title": page.title,
        "consequence": descriptions.consequence(page.kind, deployment=deployment.name, version=""),
        "next_steps": page.next_steps,
        "button": page.button,
        "button_tone": page.button_tone,
        "fields": f"changes/_{page.kind.value}_fields.html",
        "address": deployments.url_of(deployment),
        **(extra or {}),
    }
    status = form.status if form.is_bound else 200
    return render(request, "changes/change_request.html", context, status=status)
