"""The office hours of one node pool: what they are, what was last done, and requesting others or their end."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from fleet.actions.services import hours_requests
from fleet.actions.web.hours_form import OfficeHoursForm, build_initial
from fleet.actions.web.request_pages import show_request
from fleet.clusters.selectors import clusters
from fleet.models import FleetAction
from fleet.office_hours.domain.sizes import PoolKind, kind_of_slug
from fleet.office_hours.selectors import office_hours
from fleet.office_hours.selectors.office_hours import KeptHours
from portal.accounts import fleet_policy, roles
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import CommentForm

_EFFECTS: Final = (
    "When office hours end, the pool gets the smaller size",
    "When they start, it gets its previous size back",
)
_UNITS: Final = {PoolKind.NODE_GROUP: "nodes", PoolKind.NODE_POOL: "GPUs"}


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def office_hours_page(
    request: HttpRequest, user: User, cluster_id: int, kind: str, name: str
) -> HttpResponse:
    pool_kind = kind_of_slug(kind)
    if pool_kind is None:
        raise Http404
    cluster = clusters.get_cluster(cluster_id)
    kept = office_hours.find(cluster_id=cluster.id, kind=pool_kind, name=name)
    is_end = request.POST.get("end") == "1"
    initial = build_initial(kept.hours if kept else None)
    form = OfficeHoursForm(
        request.POST if request.method == "POST" and not is_end else None, initial=initial
    )
    end_form = CommentForm(request.POST if is_end else None, auto_id="end_%s")
    if request.method == "POST":
        fleet_policy.require_requester(user)
        pool = {"actor": user, "cluster_id": cluster_id, "kind": pool_kind, "name": name}
        action = _end(end_form, pool) if is_end else _set(form, pool)
        if action is not None:
            return show_request(request, action)
    sent = end_form if is_end else form
    context = {
        "cluster": cluster,
        "name": name,
        "unit": _unit(pool_kind, kept),
        "kind": pool_kind.value,
        "kept": kept,
        "form": form,
        "end_form": end_form,
        "effects": _EFFECTS,
        "may_request": roles.is_lead(user),
    }
    status = sent.status if sent.is_bound else 200
    return render(request, "actions/office_hours.html", context, status=status)


def _set(form: OfficeHoursForm, pool: dict[str, Any]) -> FleetAction | None:
    return form.run(
        lambda: hours_requests.request_office_hours(
            **pool, hours=form.hours, comment=form.cleaned_data["comment"]
        )
    )


def _end(form: CommentForm, pool: dict[str, Any]) -> FleetAction | None:
    return form.run(
        lambda: hours_requests.request_office_hours_end(
            **pool, comment=form.cleaned_data["comment"]
        )
    )


def _unit(kind: PoolKind, kept: KeptHours | None) -> str:
    """Return the unit of a pool's size. A static NodePool counts nodes, too."""
    is_static = kept is not None and "replicas" in (kept.row.last_size or {})
    return "nodes" if is_static else _UNITS[kind]
