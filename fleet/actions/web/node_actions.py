"""Requesting a cordon, an uncordon or a drain; the drain's page is its preview too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.domain.kinds import ActionKind
from fleet.actions.selectors import actions
from fleet.actions.services import requests
from fleet.actions.web.forms import DrainForm
from fleet.actions.web.rows import PodRow
from fleet.capacity.selectors import node_details
from fleet.capacity.services import drain_preview
from fleet.models import FleetAction, Node
from portal.accounts import fleet_policy
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import CommentForm

_SHOWN_ON_NODE = 5
_EFFECTS = {
    ActionKind.CORDON: (
        "No new pods start on the node; running ones stay",
        "Free GPUs of the node cannot be used, and cost the same",
    ),
    ActionKind.DRAIN: (
        "No new pods start on the node",
        "Its pods are evicted as their disruption budgets allow",
        "The node stays cordoned, and costs the same until it is removed",
    ),
    ActionKind.UNCORDON: ("The scheduler may place pods on the node again",),
}


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_cordon(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    return _simple(request, user, node_id, ActionKind.CORDON, requests.request_cordon)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_uncordon(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    return _simple(request, user, node_id, ActionKind.UNCORDON, requests.request_uncordon)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_drain(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    form = DrainForm(request.POST or None)
    if request.method == "POST":
        action = form.run(
            lambda: requests.request_drain(
                actor=user,
                node_id=node_id,
                **_known(form, "comment", "deadline_minutes", "evict_unmanaged"),
            )
        )
        if action is not None:
            return show_request(request, action)
    context = {
        "node": drain.node,
        "preview": drain.preview,
        "rows": [PodRow.of(moved) for moved in drain.preview.pods],
        "usd_per_hour_amount": drain.usd_per_hour_amount,
        "problem": drain.problem,
        "form": form,
        "effects": _EFFECTS[ActionKind.DRAIN],
    }
    return render(request, "actions/drain.html", context, status=_status(form))


@require_GET
@people_only
def node_actions(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    """A part of the node's page."""
    rows = actions.list_of_node(node_details.get_node(node_id).pk)[:_SHOWN_ON_NODE]
    return render(request, "actions/_of_node.html", {"actions": rows})


def show_request(request: HttpRequest, action: FleetAction) -> HttpResponse:
    messages.success(request, "Request sent. A platform admin, not you, decides on it.")
    return redirect("fleet-action", action_id=action.pk)


def _simple(
    request: HttpRequest,
    user: User,
    node_id: int,
    kind: ActionKind,
    run: Callable[..., FleetAction],
) -> HttpResponse:
    fleet_policy.require_requester(user)
    node: Node = node_details.get_node(node_id)
    form = CommentForm(request.POST or None)
    if request.method == "POST":
        action = form.run(lambda: run(actor=user, node_id=node_id, **_known(form, "comment")))
        if action is not None:
            return show_request(request, action)
    context = {"node": node, "kind": kind, "form": form, "effects": _EFFECTS[kind]}
    return render(request, "actions/cordon.html", context, status=_status(form))


def _known(form: CommentForm, *names: str) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in names}


def _status(form: CommentForm) -> int:
    return form.status if form.is_bound else 200
