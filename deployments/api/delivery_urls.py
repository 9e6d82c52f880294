from django.urls import URLPattern, path

from deployments.api import delivery, delivery_changes, rollout_events, serving, sizing

urlpatterns: list[URLPattern] = [
    path("deployments", delivery.DeploymentsView.as_view(), name="deployments"),
    path("deployments/preflight", delivery.PreflightView.as_view(), name="preflight"),
    path("sizing", sizing.SizingView.as_view(), name="sizing"),
    path("deployments/<int:deployment_id>", delivery.DeploymentView.as_view(), name="deployment"),
    path(
        "deployments/<int:deployment_id>/stats",
        serving.StatsView.as_view(),
        name="deployment-stats",
    ),
    path(
        "deployments/<int:deployment_id>/revisions",
        delivery.RevisionsView.as_view(),
        name="revisions",
    ),
    path(
        "deployments/<int:deployment_id>/events",
        delivery.DeploymentEventsView.as_view(),
        name="deployment-events",
    ),
    path(
        "deployments/<int:deployment_id>/changes",
        delivery.DeploymentChangesView.as_view(),
        name="request-change",
    ),
    path("changes", delivery_changes.ChangesView.as_view(), name="changes"),
    path("changes/<int:change_id>", delivery_changes.ChangeView.as_view(), name="change"),
    path("changes/<int:change_id>/approve", delivery_changes.ApproveView.as_view(), name="approve"),
    path("changes/<int:change_id>/reject", delivery_changes.RejectView.as_view(), name="reject"),
    path(
        "changes/<int:change_id>/withdraw",
        delivery_changes.WithdrawView.as_view(),
        name="withdraw",
    ),
    path(
        "rollouts/<int:rollout_id>/events",
        rollout_events.RolloutEventsView.as_view(),
        name="rollout-events",
    ),
    path("rollouts/<int:rollout_id>", delivery_changes.RolloutView.as_view(), name="rollout"),
    path(
        "rollouts/<int:rollout_id>/promote", delivery_changes.PromoteView.as_view(), name="promote"
    ),
    path(
        "rollouts/<int:rollout_id>/promote-fully",
        delivery_changes.PromoteFullyView.as_view(),
        name="promote-fully",
    ),
    path("rollouts/<int:rollout_id>/pause", delivery_changes.PauseView.as_view(), name="pause"),
    path(
        "rollouts/<int:rollout_id>/unpause", delivery_changes.UnpauseView.as_view(), name="unpause"
    ),
    path("rollouts/<int:rollout_id>/abort", delivery_changes.AbortView.as_view(), name="abort"),
]
