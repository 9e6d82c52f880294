from __future__ import annotations

from django.urls import URLPattern, path

from fleet.web import views

urlpatterns: list[URLPattern] = [
    path("fleet", views.fleet_page, name="fleet"),
    path("costs", views.costs_page, name="costs"),
    path("costs.csv", views.costs_csv, name="costs-csv"),
    path("costs/ledger", views.ledger_page, name="ledger"),
    path("costs/ledger.csv", views.ledger_csv, name="ledger-csv"),
]
