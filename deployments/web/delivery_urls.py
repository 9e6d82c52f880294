"""Addresses of deployments, rollouts and approvals."""

from django.urls import URLPattern, path

from deployments.web import (
    canary,
    decide,
    delivery_approvals,
    delivery_list,
    delivery_new,
    delivery_pages,
    delivery_requests,
    delivery_rollout,
    delivery_stop,
    delivery_try,
    drift,
    pipeline_requests,
    pipelines,
    rollout_limits,
    rollout_templates,
)

_ONE = "deployments/<slug:team>/<slug:name>"
_PIPELINE = "pipelines/<slug:team>/<slug:name>"
_TEMPLATES = "admin/teams/<slug:slug>/rollout-templates"

urlpatterns: list[URLPattern] = [
    path("deployments", delivery_list.deployments, name="deployments"),
    path("deployments/new", delivery_new.new_deployment, name="new-deployment"),
    path(_ONE, delivery_pages.overview, name="deployment"),
    path(f"{_ONE}/rollout", delivery_rollout.rollout, name="rollout"),
    path(f"{_ONE}/revisions", delivery_pages.revisions, name="revisions"),
    path(f"{_ONE}/manifests", delivery_pages.manifests, name="manifests"),
    path(f"{_ONE}/drift", drift.choose, name="drift"),
    path(f"{_ONE}/timeline", delivery_pages.timeline, name="timeline"),
    path(f"{_ONE}/logs", delivery_pages.logs, name="logs"),
    path(f"{_ONE}/try", delivery_try.try_it, name="try-it"),
    path(f"{_ONE}/cost", delivery_pages.cost, name="deployment-cost"),
    path(f"{_ONE}/canary", canary.request_canary, name="request-canary"),
    path(f"{_ONE}/roll-back", delivery_requests.request_roll_back, name="request-roll-back"),
    path(f"{_ONE}/scale", delivery_requests.request_scale, name="request-scale"),
    path(f"{_ONE}/start", delivery_requests.request_start, name="request-start"),
    path(f"{_ONE}/stop", delivery_stop.stop, name="stop-deployment"),
    path(f"{_ONE}/retire", delivery_requests.request_retire, name="request-retire"),
    path("admin/teams/<slug:slug>/rollout-limit", rollout_limits.choose, name="rollout-limit"),
    path(_TEMPLATES, rollout_templates.template_list, name="rollout-templates"),
    path(f"{_TEMPLATES}/edit", rollout_templates.edit_template, name="edit-rollout-template"),
    path(
        f"{_TEMPLATES}/<int:template_id>/remove",
        rollout_templates.remove,
        name="remove-rollout-template",
    ),
    path("pipelines", pipelines.pipeline_list, name="pipelines"),
    path("pipelines/new", pipeline_requests.new_pipeline, name="new-pipeline"),
    path(_PIPELINE, pipelines.pipeline, name="pipeline"),
    path(f"{_PIPELINE}/try", pipelines.try_pipeline, name="try-pipeline"),
    path(f"{_PIPELINE}/change", pipeline_requests.change_pipeline, name="change-pipeline"),
    path(f"{_PIPELINE}/retire", pipeline_requests.retire_pipeline, name="retire-pipeline"),
    path(f"{_PIPELINE}/start", pipeline_requests.start_pipeline, name="start-pipeline"),
    path(f"{_PIPELINE}/stop", pipeline_requests.stop_pipeline, name="stop-pipeline"),
    path("decide/<str:token>", decide.decide, name="decide"),
    path("approvals", delivery_approvals.inbox, name="approvals"),
    path("approvals/<int:change_id>", delivery_approvals.change, name="change"),
]
