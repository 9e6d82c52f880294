from django.urls import URLPattern, path

from fleet.api import cost_views, fleet_views

urlpatterns: list[URLPattern] = [
    path("clusters", fleet_views.ClustersView.as_view(), name="clusters"),
    path("clusters/<int:cluster_id>", fleet_views.ClusterView.as_view(), name="cluster"),
    path(
        "clusters/<int:cluster_id>/test", fleet_views.ClusterTestView.as_view(), name="cluster-test"
    ),
    path(
        "clusters/<int:cluster_id>/serving",
        fleet_views.ServingPolicyView.as_view(),
        name="serving-policy",
    ),
    path("clusters/<int:cluster_id>/shares", fleet_views.SharesView.as_view(), name="shares"),
    path("nodes", fleet_views.NodesView.as_view(), name="nodes"),
    path("pods", fleet_views.PodsView.as_view(), name="pods"),
    path("prices", fleet_views.PricesView.as_view(), name="prices"),
    path("usage", cost_views.UsageView.as_view(), name="usage"),
    path("costs", cost_views.CostsView.as_view(), name="api-costs"),
    path("costs/series", cost_views.CostSeriesView.as_view(), name="cost-series"),
    path("costs.csv", cost_views.CostsCsvView.as_view(), name="costs-csv"),
    path("costs/ledger.csv", cost_views.LedgerCsvView.as_view(), name="ledger-csv"),
]
