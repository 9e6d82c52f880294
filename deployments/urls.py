"""Addresses of the pages."""

from django.urls import URLPattern, path

from deployments.advice.web import pages as advice
from deployments.advice.web import what_if
from deployments.alerts.web import pages as alerts
from deployments.batch.web import pages as batch
from deployments.callers.web import jwks
from deployments.changes.web import canary, form_drafts, new_deployment, presets, promotion
from deployments.changes.web import requests as change_requests
from deployments.delivery.web import drift
from deployments.imports.web import imports, mlflow
from deployments.load_tests.web import places as load_test_places
from deployments.pages.web import (
    approvals,
    callers,
    compare_versions,
    decision_link,
    deployment_list,
    deployment_tabs,
    health,
    model,
    promote_fully,
    rollout,
    stop,
    targets,
    try_it,
)
from deployments.pipelines.web import pages, short_requests
from deployments.pipelines.web import requests as pipeline_requests
from deployments.plans.web import auto_promotion, templates
from deployments.quality.web import golden_requests
from deployments.registry.web import (
    attestations,
    model_list,
    quarantined_in_use,
    reference,
    signature,
    source_code,
    upload,
    version,
)

_MODEL = "<slug:team>/models/<slug:name>"
_VERSION = f"{_MODEL}/<int:number>"

_registry: list[URLPattern] = [
    path("<slug:team>/models", model_list.models, name="models"),
    path("quarantined-in-use", quarantined_in_use.uses, name="quarantined-in-use"),
    path("<slug:team>/upload", upload.upload, name="upload"),
    path("<slug:team>/register", reference.register, name="register-reference"),
    path("<slug:team>/import", imports.new_import, name="new-import"),
    path("<slug:team>/import/mlflow/<slug:server>", mlflow.choose, name="import-from-mlflow"),
    path("<slug:team>/imports/<int:import_id>", imports.import_page, name="import"),
    path("<slug:team>/imports/<int:import_id>/cancel", imports.cancel, name="cancel-import"),
    path("<slug:team>/imports/<int:import_id>/resume", imports.resume, name="resume-import"),
    path(_MODEL, model.model_page, name="model"),
    path(f"{_MODEL}/compare", compare_versions.compare, name="compare-versions"),
    path(f"{_MODEL}/golden-requests", golden_requests.save_answer, name="save-golden"),
    path(f"{_MODEL}/golden-requests/new", golden_requests.new_golden, name="new-golden"),
    path(
        f"{_MODEL}/golden-requests/<int:golden_id>/delete",
        golden_requests.delete_golden,
        name="delete-golden",
    ),
    path(f"{_MODEL}/edit", model.edit_model, name="edit-model"),
    path(_VERSION, version.version_page, name="version"),
    path(f"{_VERSION}/checks", version.checks, name="version-checks"),
    path(f"{_VERSION}/config.pbtxt", signature.config_file, name="version-config"),
    path(f"{_VERSION}/code", source_code.code_page, name="version-code"),
    path(f"{_VERSION}/stop", upload.stop_verification, name="version-stop"),
    path(f"{_VERSION}/discard", upload.discard, name="version-discard"),
    path(f"{_VERSION}/metadata", version.edit_metadata, name="version-metadata"),
    path(f"{_VERSION}/attestations", attestations.add, name="version-attestations"),
    path(
        f"{_VERSION}/attestations/<int:attestation_id>/remove",
        attestations.remove,
        name="remove-attestation",
    ),
    path(f"{_VERSION}/alias", version.set_alias, name="version-alias"),
    path(f"{_VERSION}/declare", version.declare, name="version-declare"),
    path(f"{_VERSION}/archive", version.archive, name="version-archive"),
    path(f"{_VERSION}/restore", version.restore, name="version-restore"),
    path(f"{_VERSION}/release", version.release, name="version-release"),
]

_ONE = "<slug:team>/deployments/<slug:name>"
_PIPELINE = "<slug:team>/pipelines/<slug:name>"
_TEMPLATES = "admin/teams/<slug:slug>/rollout-templates"
_PRESETS = "admin/teams/<slug:slug>/deployment-presets"

_deployments: list[URLPattern] = [
    path(".well-known/jwks.json", jwks.jwks, name="caller-jwks"),
    path("<slug:team>/deployments", deployment_list.deployments, name="deployments"),
    path("<slug:team>/deployments/new", new_deployment.new_deployment, name="new-deployment"),
    path(
        "<slug:team>/deployments/drafts/<str:key>/delete",
        form_drafts.delete,
        name="delete-form-draft",
    ),
    path(_ONE, deployment_tabs.overview, name="deployment"),
    path(f"{_ONE}/rollout", rollout.rollout, name="rollout"),
    path(f"{_ONE}/rollout/promote-fully", promote_fully.confirm, name="promote-fully"),
    path(f"{_ONE}/revisions", deployment_tabs.revisions, name="revisions"),
    path(f"{_ONE}/manifests", deployment_tabs.manifests, name="manifests"),
    path(f"{_ONE}/drift", drift.choose, name="drift"),
    path(f"{_ONE}/timeline", deployment_tabs.timeline, name="timeline"),
    path(f"{_ONE}/logs", deployment_tabs.logs, name="logs"),
    path(f"{_ONE}/try", try_it.try_it, name="try-it"),
    path(f"{_ONE}/try/key", try_it.create_key, name="try-it-key"),
    path(f"{_ONE}/quality", health.health, name="health"),
    path(f"{_ONE}/targets", targets.targets, name="targets"),
    path(f"{_ONE}/callers", callers.callers, name="callers"),
    path(f"{_ONE}/cost", deployment_tabs.cost, name="deployment-cost"),
    path(f"{_ONE}/canary", canary.request_canary, name="request-canary"),
    path(f"{_ONE}/promote", promotion.promote, name="promote-deployment"),
    path(f"{_ONE}/roll-back", change_requests.request_roll_back, name="request-roll-back"),
    path(f"{_ONE}/scale", change_requests.request_scale, name="request-scale"),
    path(f"{_ONE}/start", change_requests.request_start, name="request-start"),
    path(f"{_ONE}/stop", stop.stop, name="stop-deployment"),
    path(f"{_ONE}/retire", change_requests.request_retire, name="request-retire"),
    path("admin/teams/<slug:slug>/rollout-limit", auto_promotion.choose, name="rollout-limit"),
    path("admin/teams/<slug:slug>/load-tests", load_test_places.choose, name="load-tests"),
    path(_TEMPLATES, templates.template_list, name="rollout-templates"),
    path(f"{_TEMPLATES}/edit", templates.edit_template, name="edit-rollout-template"),
    path(
        f"{_TEMPLATES}/<int:template_id>/remove",
        templates.remove,
        name="remove-rollout-template",
    ),
    path(_PRESETS, presets.preset_list, name="deployment-presets"),
    path(f"{_PRESETS}/<int:preset_id>/remove", presets.remove, name="remove-deployment-preset"),
    path("<slug:team>/pipelines", pages.pipeline_list, name="pipelines"),
    path("<slug:team>/pipelines/new", pipeline_requests.new_pipeline, name="new-pipeline"),
    path(_PIPELINE, pages.pipeline, name="pipeline"),
    path(f"{_PIPELINE}/try", pages.try_pipeline, name="try-pipeline"),
    path(f"{_PIPELINE}/change", pipeline_requests.change_pipeline, name="change-pipeline"),
    path(f"{_PIPELINE}/retire", short_requests.retire_pipeline, name="retire-pipeline"),
    path(f"{_PIPELINE}/start", short_requests.start_pipeline, name="start-pipeline"),
    path(f"{_PIPELINE}/stop", short_requests.stop_pipeline, name="stop-pipeline"),
    path("decide/<str:token>", decision_link.open_link, name="open-decision-link"),
    path("decisions/<int:link_id>", decision_link.decide, name="decide"),
    path("approvals", approvals.inbox, name="approvals"),
    path("approvals/<int:change_id>", approvals.change, name="change"),
]


_ITEM = "advice/<int:item_id>"

_advice: list[URLPattern] = [
    path("alerts", alerts.inbox, name="alerts"),
    path("alerts/<int:alert_id>/silence", alerts.silence, name="silence-alert"),
    path("alerts/<int:alert_id>/unsilence", alerts.unsilence, name="unsilence-alert"),
    path("advice", advice.advice_page, name="advice"),
    path(f"{_ITEM}/request", advice.request_change, name="request-advice"),
    path(f"{_ITEM}/snooze", advice.snooze, name="snooze-advice"),
    path(f"{_ITEM}/dismiss", advice.dismiss, name="dismiss-advice"),
    path(f"{_ITEM}/reopen", advice.reopen, name="reopen-advice"),
    path("what-if", what_if.what_if_page, name="what-if"),
]

_JOB = "<slug:team>/batch/<slug:name>"

_batch: list[URLPattern] = [
    path("<slug:team>/batch", batch.list_page, name="batch-jobs"),
    path("<slug:team>/batch/new", batch.new_job, name="new-batch-job"),
    path(_JOB, batch.job_page, name="batch-job"),
    path(f"{_JOB}/parts/<int:number>", batch.part, name="batch-part"),
]

urlpatterns = [*_registry, *_deployments, *_advice, *_batch]
