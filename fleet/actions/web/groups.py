"""Managed node groups of EKS: their list, and requesting another size."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.services import node_groups as group_actions
from fleet.actions.services import requests
from fleet.actions.web.forms import GroupForm
from fleet.actions.web.request_pages import send_or_show
from fleet.clusters.selectors import clusters
from fleet.clusters.services import node_groups
from fleet.kube.domain.errors import ClusterError
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.selectors import office_hours
from portal.accounts import roles
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only

_EFFECTS = ("Slipway sends the size to AWS", "Nodes start, or AWS chooses nodes to drain and end")


@require_GET
@people_only
def groups_of_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    """Show the node groups, a part of the list of node pools: it asks AWS, so the page loads it separately."""
    cluster = clusters.get_cluster(cluster_id)
    context = {"cluster": cluster, "may_request": roles.is_lead(user), "groups": (), "problem": ""}
    try:
        groups = node_groups.list_groups(cluster_id=cluster.id)
        hours = office_hours.by_name(cluster_id=cluster.id, kind=PoolKind.NODE_GROUP)
        context["groups"] = [(group, hours.get(group.name)) for group in groups]
    except ClusterError as error:
        context["problem"] = str(error)
    return render(request, "actions/_groups.html", context)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def scale_group(request: HttpRequest, user: User, cluster_id: int, name: str) -> HttpResponse:
    group = group_actions.read(actor=user, cluster_id=cluster_id, name=name)
    form = GroupForm(request.POST or None, initial=group.size.to_json())
    return send_or_show(
        request,
        form,
        lambda: requests.request_group_scale(
            actor=user,
            cluster_id=cluster_id,
            name=name,
            size=form.size,
            comment=form.cleaned_data["comment"],
        ),
        "actions/group.html",
        {
            "cluster": clusters.get_cluster(cluster_id),
            "group": group,
            "title": f"Scale {name}",
            "effects": _EFFECTS,
        },
    )
