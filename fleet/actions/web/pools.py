"""Node pools: their list, and requesting a change or a new one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.domain.pool_settings import PoolSettings
from fleet.actions.selectors import pools
from fleet.actions.services import node_pools, requests
from fleet.actions.web.forms import NewPoolForm, PoolForm, build_initial
from fleet.actions.web.request_pages import send_or_show
from fleet.clusters.selectors import clusters
from portal.accounts import fleet_policy, roles
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only

_EFFECTS = (
    "The cluster gets these settings",
    "Karpenter starts, replaces or ends nodes by the new rules",
)


@require_GET
@people_only
def pools_page(request: HttpRequest, user: User) -> HttpResponse:
    context = {"clusters": pools.list_pools(), "may_request": roles.is_lead(user)}
    return render(request, "actions/pools.html", context)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def change_pool(request: HttpRequest, user: User, cluster_id: int, name: str) -> HttpResponse:
    current = node_pools.read_settings(actor=user, cluster_id=cluster_id, name=name)
    form = PoolForm(request.POST or None, initial=build_initial(current))
    return send_or_show(
        request,
        form,
        lambda: requests.request_pool_change(
            actor=user,
            cluster_id=cluster_id,
            name=name,
            settings=form.settings,
            comment=form.cleaned_data["comment"],
        ),
        "actions/pool.html",
        {**_context(cluster_id), "name": name, "title": f"Change {name}"},
    )


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def create_pool(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    fleet_policy.require_requester(user)
    form = NewPoolForm(request.POST or None, initial=build_initial(PoolSettings(())))
    return send_or_show(
        request,
        form,
        lambda: requests.request_pool_creation(
            actor=user,
            cluster_id=cluster_id,
            name=form.cleaned_data["name"],
            settings=form.settings,
            comment=form.cleaned_data["comment"],
        ),
        "actions/pool.html",
        {**_context(cluster_id), "title": "New node pool"},
    )


def _context(cluster_id: int) -> dict[str, Any]:
    return {"cluster": clusters.get_cluster(cluster_id), "effects": _EFFECTS}
