"""The Fleet page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from fleet.capacity.selectors import notices, overview
from fleet.capacity.services import waiting
from fleet.capacity.web import board, waiting_rows
from fleet.clusters.selectors import clusters
from portal.accounts.models import User
from portal.core.cache import recent
from portal.ui import htmx
from portal.ui.access import people_only
from portal.ui.addresses import with_query

_LAST_PAGE = 10_000
_MOST_WAITS = 20


@require_GET
@people_only
def fleet_page(request: HttpRequest, user: User) -> HttpResponse:
    """The board that is polled is shared by all who see the same of it."""
    if htmx.target_of(request) != "fleet-board":
        name = htmx.template_for(
            request, page="capacity/fleet.html", fragment="capacity/_board.html"
        )
        return render(request, name, _context_of(request, user))
    seen = overview.decide_visibility(user)
    html = recent(
        ("fleet-board", request.get_full_path(), seen.sees_all, sorted(seen.teams)),
        lambda: render_to_string("capacity/_board.html", _context_of(request, user), request),
        seconds=htmx.SHARED_SECONDS,
    )
    return HttpResponse(html)


def _context_of(request: HttpRequest, user: User) -> dict[str, Any]:
    all_clusters = clusters.list_clusters()
    cluster = next(
        (candidate for candidate in all_clusters if candidate.name == request.GET.get("cluster")),
        None,
    )
    fleet = overview.fleet_overview(actor=user, cluster_id=cluster.id if cluster else None)
    only_idle = request.GET.get("show") == "idle"
    pool = request.GET.get("pool", "")
    page = _page(request) if pool else 1
    selection = board.select(fleet, pool=pool, only_idle=only_idle, page=page)
    views = overview.list_nodes(actor=user, ids=selection.shown)
    noticed = notices.list_nodes(cluster_id=cluster.id if cluster else None)
    shown = board.build(fleet, selection, views, noticed)
    waits, wait_count = waiting.list_waiting(
        actor=user,
        pending=fleet.pending,
        most=_MOST_WAITS,
        cluster_id=cluster.id if cluster else None,
    )
    has_more = bool(pool) and any(
        row.node_count > page * board.NODES_PER_PAGE for row in shown.pools
    )
    return {
        "board": shown,
        "waits": waiting_rows.build(waits),
        "wait_count": wait_count,
        "previous_page": with_query(request, page=page - 1) if page > 1 else "",
        "next_page": with_query(request, page=page + 1) if has_more else "",
        "clusters": all_clusters,
        "selected": cluster,
        "only_idle": only_idle,
        "pool": pool,
    }


def _page(request: HttpRequest) -> int:
    text = request.GET.get("page", "1")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 1
    return min(max(number, 1), _LAST_PAGE)
