"""The price catalogue. For platform admins."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from fleet.gpus.domain import capacity_types
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price
from fleet.models import Node
from fleet.prices.domain import price_rows
from fleet.prices.domain.csv_cells import quote_formula
from fleet.prices.selectors import price_list
from fleet.prices.selectors.price_list import ListedPrice
from fleet.prices.services import catalogue, refresh
from fleet.prices.web.forms import PriceFilterForm, PriceForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to
from portal.ui.htmx import respond
from portal.ui.lists import sortable_columns

# Fields that a link to the form may fill in.
_PREFILLED: Final = ("instance_type", "region", "capacity_type")
_PER_PAGE: Final = 20


@dataclass(frozen=True, slots=True)
class PriceLine:
    price: Price
    # Of present nodes that cost this price.
    nodes: int = 0
    # In the list of sources below the table; 0: the line says its source itself.
    source_number: int = 0

    @property
    def capacity(self) -> str:
        return capacity_types.LABELS.get(self.price.capacity_type, self.price.capacity_type)

    @property
    def is_own(self) -> bool:
        return self.price.capacity_type == capacity_types.OWN


@require_GET
@people_only
def price_page(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    return _render_list(request)


@require_POST
@people_only
def load_prices(request: HttpRequest, user: User) -> HttpResponse:
    loaded = catalogue.load_catalogue(actor=user)
    _add_loaded_message(request, loaded)
    return redirect("admin-prices")


@require_POST
@people_only
def import_prices(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    file = request.FILES.get("file")
    if file is None:
        return _render_list(request, problem="Choose a CSV file.", status=422)
    try:
        # One byte more shows that there is more than the limit.
        loaded = catalogue.load_bytes(actor=user, content=file.read(catalogue.MAX_BYTES + 1))
    except Invalid as error:
        return _render_list(request, problem=error.message, status=422)
    _add_loaded_message(request, loaded)
    return redirect("admin-prices")


@require_POST
@people_only
def refresh_prices(request: HttpRequest, user: User) -> HttpResponse:
    try:
        refreshed = refresh.refresh(actor=user)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("admin-prices")
    messages.success(request, f"Read prices from AWS, {refreshed.new} new.")
    for problem in refreshed.problems:
        messages.error(request, problem)
    return redirect("admin-prices")


@require_http_methods(["GET", "POST"])
@people_only
def enter_price(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    given = {name: request.GET[name] for name in _PREFILLED if name in request.GET}
    form = PriceForm(request.POST or None, initial=given)
    if request.method == "POST" and form.is_valid():
        try:
            catalogue.enter(actor=user, row=form.row())
        except Invalid as error:
            add_to(form, error)
        else:
            name = form.cleaned_data["instance_type"]
            messages.success(request, f"Price of {name} saved.")
            return redirect("admin-price-history", instance_type=name)
    known = sorted({price.instance_type for price in prices.list_rows()})
    context = {"form": form, "types": known}
    return render(
        request, "prices/admin_price_form.html", context, status=422 if form.errors else 200
    )


@require_GET
@people_only
def history_page(request: HttpRequest, user: User, instance_type: str) -> HttpResponse:
    policy.require_platform_admin(user)
    lines = [PriceLine(price) for price in prices.list_history(instance_type)]
    context = {"instance_type": instance_type, "lines": lines, "today": clock.now().date()}
    return render(request, "prices/admin_price_history.html", context, status=200 if lines else 404)


@require_POST
@people_only
def remove_price(request: HttpRequest, user: User, price_id: int) -> HttpResponse:
    instance_type = catalogue.remove(actor=user, price_id=price_id)
    messages.success(request, "Price removed. Sealed hours keep what they were sealed with.")
    if prices.list_history(instance_type):
        return redirect("admin-price-history", instance_type=instance_type)
    return redirect("admin-prices")


@require_GET
@people_only
def export_prices(request: HttpRequest, user: User) -> HttpResponse:
    """Export the whole catalogue, in the columns that can be imported again."""
    policy.require_platform_admin(user)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="prices.csv"'
    writer = csv.writer(response)
    writer.writerow(price_rows.COLUMNS)
    writer.writerows(_cells(price) for price in prices.list_rows())
    return response


def _cells(price: Price) -> Iterable[str]:
    for column in price_rows.COLUMNS:
        if column == "usd_per_hour":
            yield str(price.usd_per_hour_amount)
        elif column == "is_mig_capable":
            yield "yes" if price.is_mig_capable else "no"
        else:
            yield quote_formula(str(getattr(price, column)))


def _render_list(request: HttpRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    form = PriceFilterForm(request)
    listed = price_list.list_prices(
        on=clock.now().date(), price_filter=form.price_filter, order=form.order
    )
    page = Paginator(listed, _PER_PAGE).get_page(request.GET.get("page"))
    counted = Counter(row.price.source for row in page)
    sources = [source for source, lines in counted.items() if lines > 1]
    titles = {"type": "Instance type", "price": "$/h"}
    context: dict[str, Any] = {
        "form": form,
        "page": page,
        "lines": [_line(row, sources) for row in page],
        "sources": sources,
        "has_prices": bool(price_list.list_regions()),
        "columns": sortable_columns(request, form.order, titles),
        "unpriced": _unpriced(prices.nodes_without_price()),
        "reads_aws": settings.SLIPWAY_AWS_PRICES,
        "problem": problem,
        "csv_columns": ", ".join(price_rows.COLUMNS),
    }
    parts = {"price-rows": "prices/_price_rows.html"}
    return respond(request, "prices/admin_prices.html", context, parts=parts, status=status)


def _line(row: ListedPrice, sources: Sequence[str]) -> PriceLine:
    source = row.price.source
    return PriceLine(row.price, row.nodes, sources.index(source) + 1 if source in sources else 0)


@dataclass(frozen=True, slots=True)
class UnpricedType:
    """An instance type whose nodes share a missing price."""

    key: prices.PriceKey
    nodes: tuple[str, ...]


def _unpriced(nodes: Iterable[Node]) -> list[UnpricedType]:
    by_key: dict[prices.PriceKey, list[str]] = {}
    for node in nodes:
        by_key.setdefault(prices.key_of(node), []).append(node.name)
    return [UnpricedType(key, tuple(names)) for key, names in by_key.items()]


def _add_loaded_message(request: HttpRequest, loaded: catalogue.LoadResult) -> None:
    types, read = len(loaded.unpriced), loaded.prices
    unpriced = (
        f" {types} {'type has' if types == 1 else 'types have'} no known price." if types else ""
    )
    text = f"Read {read:,} {'price' if read == 1 else 'prices'}, {loaded.new:,} new.{unpriced}"
    messages.success(request, text)
