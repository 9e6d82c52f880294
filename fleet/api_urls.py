from django.urls import URLPattern, path

from fleet.actions.api import node_classes, office_hours, pools
from fleet.actions.api import views as action_views
from fleet.capacity.api import drain, node_views
from fleet.capacity.api import views as capacity_views
from fleet.clusters.api import views as cluster_views
from fleet.costs.api import caller_views, unusual_views, views
from fleet.observation.api import views as observation_views
from fleet.prices.api import views as gpu_views

urlpatterns: list[URLPattern] = [
    path("clusters", cluster_views.ClustersView.as_view(), name="clusters"),
    path("clusters/<int:cluster_id>", cluster_views.ClusterView.as_view(), name="cluster"),
    path(
        "clusters/<int:cluster_id>/test",
        cluster_views.ClusterTestView.as_view(),
        name="cluster-test",
    ),
    path(
        "clusters/<int:cluster_id>/serving",
        cluster_views.ServingPolicyView.as_view(),
        name="serving-policy",
    ),
    path("clusters/<int:cluster_id>/shares", capacity_views.SharesView.as_view(), name="shares"),
    path("clusters/<int:cluster_id>/node-pools", pools.NodePoolsView.as_view(), name="node-pools"),
    path(
        "clusters/<int:cluster_id>/node-pools/<slug:pool>",
        pools.NodePoolView.as_view(),
        name="node-pool",
    ),
    path(
        "clusters/<int:cluster_id>/node-groups",
        pools.NodeGroupsView.as_view(),
        name="node-groups",
    ),
    path(
        "clusters/<int:cluster_id>/node-groups/<str:group>",
        pools.NodeGroupView.as_view(),
        name="node-group",
    ),
    path(
        "clusters/<int:cluster_id>/node-classes",
        node_classes.NodeClassesView.as_view(),
        name="node-classes",
    ),
    path(
        "clusters/<int:cluster_id>/node-classes/<str:node_class>",
        node_classes.NodeClassView.as_view(),
        name="node-class",
    ),
    path(
        "clusters/<int:cluster_id>/office-hours",
        office_hours.OfficeHoursListView.as_view(),
        name="cluster-office-hours",
    ),
    path(
        "clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:pool>",
        office_hours.OfficeHoursView.as_view(),
        name="office-hours",
    ),
    path(
        "clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:pool>/end",
        office_hours.EndOfficeHoursView.as_view(),
        name="office-hours-end",
    ),
    path("nodes", capacity_views.NodesView.as_view(), name="nodes"),
    path("nodes/<int:node_id>", node_views.NodeDetailView.as_view(), name="node"),
    path(
        "nodes/<int:node_id>/drain-preview",
        drain.DrainPreviewView.as_view(),
        name="node-drain-preview",
    ),
    path("nodes/<int:node_id>/starts", node_views.NodeStartsView.as_view(), name="node-starts"),
    path("nodes/<int:node_id>/cordon", action_views.CordonView.as_view(), name="node-cordon"),
    path("nodes/<int:node_id>/uncordon", action_views.UncordonView.as_view(), name="node-uncordon"),
    path("nodes/<int:node_id>/drain", action_views.DrainView.as_view(), name="node-drain"),
    path("nodes/<int:node_id>/mig", action_views.MigLayoutView.as_view(), name="node-mig"),
    path(
        "nodes/<int:node_id>/gpu-sharing",
        action_views.GpuSharingView.as_view(),
        name="node-gpu-sharing",
    ),
    path("fleet-actions", action_views.FleetActionsView.as_view(), name="fleet-actions"),
    path(
        "fleet-actions/<int:action_id>",
        action_views.FleetActionView.as_view(),
        name="fleet-action",
    ),
    *(
        path(f"fleet-actions/<int:action_id>/{name}", view.as_view(), name=f"fleet-action-{name}")
        for name, view in (
            ("approve", action_views.ApproveView),
            ("reject", action_views.RejectView),
            ("withdraw", action_views.WithdrawView),
            ("cancel", action_views.CancelView),
        )
    ),
    path("nodes/<int:node_id>/hours", node_views.NodeHoursView.as_view(), name="node-hours"),
    path(
        "nodes/<int:node_id>/utilisation",
        node_views.NodeUseView.as_view(),
        name="node-utilisation",
    ),
    path("pods", observation_views.PodsView.as_view(), name="pods"),
    path("prices", gpu_views.PricesView.as_view(), name="prices"),
    path("usage", views.UsageView.as_view(), name="usage"),
    path("costs", views.CostsView.as_view(), name="api-costs"),
    path("costs/series", views.CostSeriesView.as_view(), name="cost-series"),
    path("costs/unusual-days", unusual_views.UnusualDaysView.as_view(), name="unusual-days"),
    path("costs.csv", views.CostsCsvView.as_view(), name="costs-csv"),
    path(
        "teams/<slug:slug>/caller-costs",
        caller_views.CallerCostsView.as_view(),
        name="team-caller-costs",
    ),
    path("costs/ledger.csv", views.LedgerCsvView.as_view(), name="ledger-csv"),
]
