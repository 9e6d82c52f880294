"""Addresses of the REST API."""

from django.urls import URLPattern, path

from deployments.advice.api import views as advice
from deployments.alerts.api.views import urlpatterns as alerts
from deployments.approvals.api import rules
from deployments.attestations.api.trust_roots import urlpatterns as trust_roots
from deployments.attestations.api.views import urlpatterns as attestations
from deployments.batch.api.parts import urlpatterns as batch_parts
from deployments.batch.api.uploads import urlpatterns as batch_uploads
from deployments.batch.api.views import urlpatterns as batch
from deployments.callers.api.token_issuers import urlpatterns as token_issuers
from deployments.callers.api.views import urlpatterns as callers
from deployments.changes.api import emergency_reviews, plan_figures, presets, promotions, requests
from deployments.changes.api.changes import urlpatterns as changes
from deployments.delivery.api import drift, logs
from deployments.environments.api.views import urlpatterns as environments
from deployments.health.api.views import urlpatterns as health
from deployments.imports.api.imports import urlpatterns as imports
from deployments.imports.api.mlflow import urlpatterns as mlflow
from deployments.lifecycle.api import deployments
from deployments.load_tests.api import places as load_test_places
from deployments.pages.api.approvals import urlpatterns as approvals
from deployments.pipelines.api.urls import urlpatterns as pipelines
from deployments.plans.api import auto_promotion, templates
from deployments.preflight.api import gpu_advice
from deployments.quality.api import views
from deployments.registry.api.urls import urlpatterns as registry
from deployments.rollouts.api import before_traffic, events, rollouts
from deployments.serving.api import statistics
from deployments.targets.api.views import urlpatterns as targets

_deployments: list[URLPattern] = [
    path("deployments", deployments.DeploymentsView.as_view(), name="deployments"),
    path("deployments/preflight", deployments.PreflightView.as_view(), name="preflight"),
    path("sizing", gpu_advice.SizingView.as_view(), name="sizing"),
    path(
        "deployments/<int:deployment_id>", deployments.DeploymentView.as_view(), name="deployment"
    ),
    path(
        "deployments/<int:deployment_id>/stats",
        statistics.StatsView.as_view(),
        name="deployment-stats",
    ),
    path(
        "deployments/<int:deployment_id>/revisions",
        deployments.RevisionsView.as_view(),
        name="revisions",
    ),
    path(
        "deployments/<int:deployment_id>/events",
        deployments.DeploymentEventsView.as_view(),
        name="deployment-events",
    ),
    path("deployments/<int:deployment_id>/logs", logs.LogsView.as_view(), name="deployment-logs"),
    path("deployments/<int:deployment_id>/drift", drift.DriftView.as_view(), name="drift"),
    path(
        "deployments/<int:deployment_id>/drift/re-apply",
        drift.ReApplyView.as_view(),
        name="re-apply",
    ),
    path("deployments/<int:deployment_id>/drift/adopt", drift.AdoptView.as_view(), name="adopt"),
    path("deployments/<int:deployment_id>/stop", deployments.StopView.as_view(), name="stop"),
    path(
        "deployments/<int:deployment_id>/changes",
        requests.DeploymentChangesView.as_view(),
        name="request-change",
    ),
    path(
        "deployments/<int:deployment_id>/changes/preflight",
        requests.ChangePreflightView.as_view(),
        name="change-preflight",
    ),
    path(
        "deployments/<int:deployment_id>/promotion",
        promotions.PromotionView.as_view(),
        name="promotion",
    ),
    path(
        "deployments/<int:deployment_id>/rollout-figures",
        plan_figures.RolloutFiguresView.as_view(),
        name="rollout-figures",
    ),
    path(
        "teams/<slug:slug>/load-tests", load_test_places.LoadTestsView.as_view(), name="load-tests"
    ),
    path(
        "teams/<slug:slug>/rollout-limit",
        auto_promotion.RolloutLimitView.as_view(),
        name="rollout-limit",
    ),
    path(
        "teams/<slug:slug>/rollout-templates",
        templates.TemplatesView.as_view(),
        name="rollout-templates",
    ),
    path(
        "teams/<slug:slug>/rollout-templates/<int:template_id>",
        templates.TemplateView.as_view(),
        name="rollout-template",
    ),
    path(
        "teams/<slug:slug>/deployment-presets",
        presets.PresetsView.as_view(),
        name="deployment-presets",
    ),
    path(
        "teams/<slug:slug>/deployment-presets/<int:preset_id>",
        presets.PresetView.as_view(),
        name="deployment-preset",
    ),
    path("deployment-presets", presets.PlatformPresetsView.as_view(), name="platform-presets"),
    path(
        "deployment-presets/<int:preset_id>",
        presets.PlatformPresetView.as_view(),
        name="platform-preset",
    ),
    path(
        "rollouts/<int:rollout_id>/events",
        events.RolloutEventsView.as_view(),
        name="rollout-events",
    ),
    path("emergency-reviews", emergency_reviews.ReviewsView.as_view(), name="emergency-reviews"),
    path(
        "emergency-reviews/<int:review_id>/close",
        emergency_reviews.CloseReviewView.as_view(),
        name="close-emergency-review",
    ),
    path("approval-rules", rules.RulesView.as_view(), name="approval-rules"),
    path("approval-rules/<int:rule_id>", rules.RuleView.as_view(), name="approval-rule"),
    path("rollouts/<int:rollout_id>", rollouts.RolloutView.as_view(), name="rollout"),
    path("rollouts/<int:rollout_id>/promote", rollouts.PromoteView.as_view(), name="promote"),
    path(
        "rollouts/<int:rollout_id>/promote-fully",
        rollouts.PromoteFullyView.as_view(),
        name="promote-fully",
    ),
    path("rollouts/<int:rollout_id>/pause", rollouts.PauseView.as_view(), name="pause"),
    path("rollouts/<int:rollout_id>/unpause", rollouts.UnpauseView.as_view(), name="unpause"),
    path(
        "rollouts/<int:rollout_id>/finish-watch",
        rollouts.FinishWatchView.as_view(),
        name="finish-watch",
    ),
    path("rollouts/<int:rollout_id>/abort", rollouts.AbortView.as_view(), name="abort"),
]

_quality: list[URLPattern] = [
    path(
        "models/<slug:team>/<str:name>/golden-requests",
        views.GoldenRequestsView.as_view(),
        name="golden-requests",
    ),
    path(
        "golden-requests/<int:golden_id>",
        views.GoldenRequestView.as_view(),
        name="golden-request",
    ),
    path(
        "rollouts/<int:rollout_id>/before-traffic",
        before_traffic.BeforeTrafficView.as_view(),
        name="before-traffic",
    ),
    path(
        "deployments/<int:deployment_id>/observations",
        views.ObservationsView.as_view(),
        name="observations",
    ),
]


_ITEM = "advice/<int:item_id>"

_advice: list[URLPattern] = [
    path("advice", advice.AdviceView.as_view(), name="advice"),
    path(f"{_ITEM}/request", advice.RequestAdviceView.as_view(), name="request-advice"),
    path(f"{_ITEM}/snooze", advice.SnoozeView.as_view(), name="snooze-advice"),
    path(f"{_ITEM}/dismiss", advice.DismissView.as_view(), name="dismiss-advice"),
    path(f"{_ITEM}/reopen", advice.ReopenView.as_view(), name="reopen-advice"),
]

urlpatterns = [
    *_deployments,
    *_advice,
    *attestations,
    *trust_roots,
    *batch,
    *batch_parts,
    *batch_uploads,
    *approvals,
    *callers,
    *token_issuers,
    *changes,
    *environments,
    *_quality,
    *health,
    *alerts,
    *targets,
    *pipelines,
    *registry,
    *imports,
    *mlflow,
]
