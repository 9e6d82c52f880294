"""The Fleet page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fleet.capacity.selectors import overview
from fleet.capacity.web import board
from fleet.clusters.selectors import clusters
from portal.accounts.models import User
from portal.ui import htmx
from portal.ui.access import people_only


@require_GET
@people_only
def fleet_page(request: HttpRequest, user: User) -> HttpResponse:
    all_clusters = clusters.list_clusters()
    cluster = next(
        (candidate for candidate in all_clusters if candidate.name == request.GET.get("cluster")),
        None,
    )
    fleet = overview.fleet_overview(actor=user, cluster_id=cluster.id if cluster else None)
    only_idle = request.GET.get("show") == "idle"
    pool = request.GET.get("pool", "")
    context = {
        "board": board.build(fleet, pool=pool, only_idle=only_idle),
        "clusters": all_clusters,
        "selected": cluster,
        "only_idle": only_idle,
        "pool": pool,
    }
    name = htmx.template_for(request, page="capacity/fleet.html", fragment="capacity/_board.html")
    return render(request, name, context)
