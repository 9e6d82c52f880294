"""List prices. For platform admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from fleet.gpus.selectors import prices as price_list
from fleet.gpus.services import prices
from portal.accounts import policy
from portal.accounts.models import User
from portal.core import clock
from portal.ui.access import people_only


@require_GET
@people_only
def price_page(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    rows = price_list.list_prices(on=clock.now().date())
    return render(request, "gpus/admin_prices.html", {"prices": rows})


@require_POST
@people_only
def load_prices(request: HttpRequest, user: User) -> HttpResponse:
    loaded = prices.load_catalogue(actor=user)
    unpriced = f" {len(loaded.unpriced)} types have no known price." if loaded.unpriced else ""
    messages.success(request, f"Read {loaded.prices} prices, {loaded.new} new.{unpriced}")
    return redirect("admin-prices")
