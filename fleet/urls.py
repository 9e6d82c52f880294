from __future__ import annotations

from django.urls import URLPattern, path

from fleet.actions.web import groups, node_actions, node_classes, node_layout, office_hours, pools
from fleet.actions.web import pages as action_pages
from fleet.capacity.web import node, pages
from fleet.costs.web import callers as caller_costs
from fleet.costs.web import pages as cost_pages

urlpatterns: list[URLPattern] = [
    path("fleet", pages.fleet_page, name="fleet"),
    path("fleet/nodes/gone", node.gone_nodes_page, name="gone-nodes"),
    path("fleet/nodes/<int:node_id>", node.node_page, name="node"),
    path("fleet/nodes/<int:node_id>/drain", node_actions.request_drain, name="node-drain"),
    path("fleet/nodes/<int:node_id>/cordon", node_actions.request_cordon, name="node-cordon"),
    path("fleet/nodes/<int:node_id>/uncordon", node_actions.request_uncordon, name="node-uncordon"),
    path("fleet/nodes/<int:node_id>/mig", node_layout.request_mig, name="node-mig"),
    path(
        "fleet/nodes/<int:node_id>/gpu-sharing",
        node_layout.request_gpu_sharing,
        name="node-gpu-sharing",
    ),
    path("fleet/nodes/<int:node_id>/actions", node_actions.node_actions, name="node-actions"),
    path("fleet/actions", action_pages.actions_page, name="fleet-actions"),
    path("fleet/actions/<int:action_id>", action_pages.action_page, name="fleet-action"),
    path(
        "fleet/clusters/<int:cluster_id>/node-groups",
        groups.groups_of_cluster,
        name="node-groups",
    ),
    path(
        "fleet/clusters/<int:cluster_id>/node-groups/<str:name>",
        groups.scale_group,
        name="node-group",
    ),
    path(
        "fleet/clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:name>",
        office_hours.office_hours_page,
        name="office-hours",
    ),
    path(
        "fleet/clusters/<int:cluster_id>/node-classes",
        node_classes.classes_of_cluster,
        name="node-classes",
    ),
    path(
        "fleet/clusters/<int:cluster_id>/node-classes/new",
        node_classes.create_class,
        name="new-node-class",
    ),
    path(
        "fleet/clusters/<int:cluster_id>/node-classes/of/<str:name>",
        node_classes.change_class,
        name="node-class",
    ),
    path("fleet/pools", pools.pools_page, name="node-pools"),
    path("fleet/clusters/<int:cluster_id>/pools/new", pools.create_pool, name="new-node-pool"),
    path(
        "fleet/clusters/<int:cluster_id>/pools/of/<slug:name>",
        pools.change_pool,
        name="node-pool",
    ),
    path("costs", cost_pages.costs_page, name="costs"),
    path("costs.csv", cost_pages.costs_csv, name="costs-csv"),
    path("costs/callers", caller_costs.callers_page, name="caller-costs"),
    path("costs/callers.csv", caller_costs.callers_csv, name="caller-costs-csv"),
    path("costs/ledger", cost_pages.ledger_page, name="ledger"),
    path("costs/ledger.csv", cost_pages.ledger_csv, name="ledger-csv"),
]
