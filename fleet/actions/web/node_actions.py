"""Requesting a cordon, an uncordon or a drain; the drain's page is its preview too."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.domain.kinds import ActionKind
from fleet.actions.selectors import actions
from fleet.actions.services import requests
from fleet.actions.web.forms import DrainForm
from fleet.actions.web.request_pages import send_or_show
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
        "Free GPUs of the node cannot be used, but still cost the same",
    ),
    ActionKind.DRAIN: (
        "No new pods start on the node",
        "Its pods are evicted as their disruption budgets allow",
        "The node stays cordoned and costs the same until it is removed",
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
    context = {
        "node": drain.node,
        "preview": drain.preview,
        "rows": [PodRow.from_moved_pod(moved) for moved in drain.preview.pods],
        "usd_per_hour_amount": drain.usd_per_hour_amount,
        "problem": drain.problem,
        "effects": _EFFECTS[ActionKind.DRAIN],
    }
    return send_or_show(
        request,
        form,
        lambda: requests.request_drain(actor=user, node_id=node_id, **form.cleaned_data),
        "actions/drain.html",
        context,
    )


@require_GET
@people_only
def node_actions(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    """Show the actions on a node, a part of its page."""
    rows = actions.list_of_node(node_details.get_node(node_id).pk)[:_SHOWN_ON_NODE]
    return render(request, "actions/_of_node.html", {"actions": rows})


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
    return send_or_show(
        request,
        form,
        lambda: run(actor=user, node_id=node_id, comment=form.cleaned_data["comment"]),
        "actions/cordon.html",
        {
            "node": node,
            "kind": kind,
            "title": f"{kind.verb} {node.name}",
            "effects": _EFFECTS[kind],
        },
    )
