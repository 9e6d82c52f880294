from django.urls import URLPattern, path

from deployments.api import quality

urlpatterns: list[URLPattern] = [
    path(
        "models/<slug:team>/<str:name>/golden-requests",
        quality.GoldenRequestsView.as_view(),
        name="golden-requests",
    ),
    path(
        "golden-requests/<int:golden_id>",
        quality.GoldenRequestView.as_view(),
        name="golden-request",
    ),
    path(
        "rollouts/<int:rollout_id>/before-traffic",
        quality.BeforeTrafficView.as_view(),
        name="before-traffic",
    ),
    path(
        "deployments/<int:deployment_id>/observations",
        quality.ObservationsView.as_view(),
        name="observations",
    ),
]
