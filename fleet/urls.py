from __future__ import annotations

from django.urls import URLPattern, path

from fleet.capacity.web import drain, node, pages
from fleet.costs.web import callers as caller_costs
from fleet.costs.web import pages as cost_pages

urlpatterns: list[URLPattern] = [
    path("fleet", pages.fleet_page, name="fleet"),
    path("fleet/nodes/gone", node.gone_nodes_page, name="gone-nodes"),
    path("fleet/nodes/<int:node_id>", node.node_page, name="node"),
    path("fleet/nodes/<int:node_id>/drain", drain.drain_page, name="node-drain"),
    path("costs", cost_pages.costs_page, name="costs"),
    path("costs.csv", cost_pages.costs_csv, name="costs-csv"),
    path("costs/callers", caller_costs.callers_page, name="caller-costs"),
    path("costs/callers.csv", caller_costs.callers_csv, name="caller-costs-csv"),
    path("costs/ledger", cost_pages.ledger_page, name="ledger"),
    path("costs/ledger.csv", cost_pages.ledger_csv, name="ledger-csv"),
]
