from django.urls import URLPattern, path

from deployments.api import (
    approvals,
    asking,
    delivery,
    delivery_changes,
    drift,
    rollout_events,
    rollout_figures,
    rollout_limits,
    rollout_templates,
    serving,
    sizing,
)

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
    path("deployments/<int:deployment_id>/drift", drift.DriftView.as_view(), name="drift"),
    path(
        "deployments/<int:deployment_id>/drift/re-apply",
        drift.ReApplyView.as_view(),
        name="re-apply",
    ),
    path("deployments/<int:deployment_id>/drift/adopt", drift.AdoptView.as_view(), name="adopt"),
    path("deployments/<int:deployment_id>/stop", delivery.StopView.as_view(), name="stop"),
    path(
        "deployments/<int:deployment_id>/changes",
        asking.DeploymentChangesView.as_view(),
        name="request-change",
    ),
    path(
        "deployments/<int:deployment_id>/changes/preflight",
        asking.ChangePreflightView.as_view(),
        name="change-preflight",
    ),
    path(
        "deployments/<int:deployment_id>/rollout-figures",
        rollout_figures.RolloutFiguresView.as_view(),
        name="rollout-figures",
    ),
    path("changes", delivery_changes.ChangesView.as_view(), name="changes"),
    path("changes/<int:change_id>", delivery_changes.ChangeView.as_view(), name="change"),
    path(
        "changes/<int:change_id>/checks",
        delivery_changes.ChangeChecksView.as_view(),
        name="change-checks",
    ),
    path("changes/<int:change_id>/approve", delivery_changes.ApproveView.as_view(), name="approve"),
    path("changes/<int:change_id>/reject", delivery_changes.RejectView.as_view(), name="reject"),
    path(
        "changes/<int:change_id>/withdraw",
        delivery_changes.WithdrawView.as_view(),
        name="withdraw",
    ),
    path(
        "teams/<slug:slug>/rollout-limit",
        rollout_limits.RolloutLimitView.as_view(),
        name="rollout-limit",
    ),
    path(
        "teams/<slug:slug>/rollout-templates",
        rollout_templates.TemplatesView.as_view(),
        name="rollout-templates",
    ),
    path(
        "teams/<slug:slug>/rollout-templates/<int:template_id>",
        rollout_templates.TemplateView.as_view(),
        name="rollout-template",
    ),
    path(
        "rollouts/<int:rollout_id>/events",
        rollout_events.RolloutEventsView.as_view(),
        name="rollout-events",
    ),
    path(
        "changes/<int:change_id>/approve-in-emergency",
        approvals.EmergencyView.as_view(),
        name="approve-in-emergency",
    ),
    path("emergency-reviews", approvals.ReviewsView.as_view(), name="emergency-reviews"),
    path(
        "emergency-reviews/<int:review_id>/close",
        approvals.CloseReviewView.as_view(),
        name="close-emergency-review",
    ),
    path("approval-rules", approvals.RulesView.as_view(), name="approval-rules"),
    path("approval-rules/<int:rule_id>", approvals.RuleView.as_view(), name="approval-rule"),
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
