"""Clusters with a connection test that explains, and prices. For platform admins."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from fleet.selectors import clusters as cluster_list
from fleet.selectors import prices as price_list
from fleet.services import clusters, connection_test, prices
from portal.accounts import policy
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Invalid
from portal.dashboard.admin_forms import ClusterForm
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@require_http_methods(["GET", "POST"])
@people_only
def cluster_page(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    form = ClusterForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _is_registered(user, form):
        messages.success(request, f"{form.cleaned_data['name']} is registered. Test it now.")
        return redirect("admin-clusters")
    return _render_clusters(request, form, {})


@require_POST
@people_only
def test_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    result = connection_test.run(actor=user, cluster_id=cluster_id)
    return _render_clusters(request, ClusterForm(), {"tested_id": cluster_id, "result": result})


@require_GET
@people_only
def price_page(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    rows = price_list.list_prices(on=clock.now().date())
    return render(request, "dashboard/admin_prices.html", {"prices": rows})


@require_POST
@people_only
def load_prices(request: HttpRequest, user: User) -> HttpResponse:
    loaded = prices.load_catalogue(actor=user)
    unpriced = f" {len(loaded.unpriced)} types have no known price." if loaded.unpriced else ""
    messages.success(request, f"{loaded.prices} prices read, {loaded.new} of them new.{unpriced}")
    return redirect("admin-prices")


def _is_registered(user: User, form: ClusterForm) -> bool:
    try:
        clusters.register(actor=user, draft=form.draft())
    except Invalid as error:
        add_to(form, error)
        return False
    return True


def _render_clusters(
    request: HttpRequest, form: ClusterForm, more: Mapping[str, object]
) -> HttpResponse:
    context = {"clusters": cluster_list.list_clusters(), "form": form, **more}
    status = 422 if form.errors else 200
    return render(request, "dashboard/admin_clusters.html", context, status=status)
