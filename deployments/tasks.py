"""Celery tasks of the app. Each finds its work in rows, so it may run twice, late, or never."""

from __future__ import annotations

from celery import shared_task

from deployments.advice.services import refresh as advice_refresh
from deployments.alerts.services import sweep as alert_sweep
from deployments.attestations.services import verification as attestation_verification
from deployments.batch.services import advance as batch_advance
from deployments.callers.services import keys as caller_keys
from deployments.callers.services import token_limits
from deployments.callers.services import usage as caller_usage
from deployments.changes.services import form_drafts
from deployments.delivery.services import caller_keys as delivered_keys
from deployments.delivery.services import reconcile, serving_watch
from deployments.health.services import watch
from deployments.imports.services import advance
from deployments.lifecycle.services import apply_changes
from deployments.models import (
    Attestation,
    ChangeRequest,
    Deployment,
    Import,
    ModelVersion,
    Pipeline,
    PrometheusReading,
    Rollout,
)
from deployments.pipelines.services import reconcile as pipeline_reconcile
from deployments.quality.services import golden_runs
from deployments.registry.services import verification
from deployments.registry.services.scans import rescan
from deployments.rollouts.services import prometheus_readings
from deployments.rollouts.services import reconcile as rollout_reconcile
from deployments.targets.services import count as target_counts
from portal.core.sweeps import looks

# As many as a sweep can finish within its time limit; the next sweep continues.
_MAX_BATCHES = 4


@shared_task(name="deployments.sweep_changes", time_limit=120)
def sweep_changes() -> None:
    apply_changes.sweep()


@shared_task(name="deployments.sweep_advice", time_limit=600)
def sweep_advice() -> None:
    advice_refresh.sweep()


@shared_task(name="deployments.sweep_deployments", time_limit=120)
def sweep_deployments() -> None:
    for _ in range(_MAX_BATCHES):
        if reconcile.sweep() < reconcile.BATCH:
            return


@shared_task(name="deployments.sweep_caller_keys", time_limit=60)
def sweep_caller_keys() -> None:
    caller_keys.end_expired()
    token_limits.resume_paused()


@shared_task(name="deployments.sweep_caller_usage", time_limit=60)
def sweep_caller_usage() -> None:
    caller_usage.sweep()


@shared_task(name="deployments.count_callers", time_limit=60)
def count_callers(cluster_id: int) -> None:
    caller_usage.count(cluster_id=cluster_id)


@shared_task(name="deployments.sweep_rollouts", time_limit=120)
def sweep_rollouts() -> None:
    rollout_reconcile.sweep()


@shared_task(name="deployments.apply_change", time_limit=120)
def apply_change(change_id: int) -> None:
    deployment_id = apply_changes.apply_change(change_id=change_id)
    if deployment_id is not None:
        reconcile.reconcile(deployment_id=deployment_id)


@shared_task(name="deployments.reconcile_deployment", time_limit=120)
def reconcile_deployment(deployment_id: int) -> None:
    reconcile.reconcile(deployment_id=deployment_id)


@shared_task(name="deployments.push_caller_keys", time_limit=60)
def push_caller_keys(deployment_id: int) -> None:
    delivered_keys.push_at_once(deployment_id=deployment_id)


@shared_task(name="deployments.advance_rollout", time_limit=60)
def advance_rollout(rollout_id: int) -> None:
    rollout_reconcile.advance(rollout_id=rollout_id)


@shared_task(name="deployments.sweep_golden_runs", time_limit=120)
def sweep_golden_runs() -> None:
    golden_runs.sweep()


@shared_task(name="deployments.sweep_health", time_limit=300)
def sweep_health() -> None:
    watch.sweep()


@shared_task(name="deployments.sweep_targets", time_limit=300)
def sweep_targets() -> None:
    for _ in range(_MAX_BATCHES):
        if target_counts.sweep() < target_counts.BATCH:
            return


@shared_task(name="deployments.sweep_alerts", time_limit=300)
def sweep_alerts() -> None:
    alert_sweep.sweep()


@shared_task(name="deployments.sweep_prometheus", time_limit=120)
def sweep_prometheus() -> None:
    prometheus_readings.sweep()


@shared_task(name="deployments.sweep_pipelines", time_limit=120)
def sweep_pipelines() -> None:
    pipeline_reconcile.sweep()


@shared_task(name="deployments.reconcile_pipeline", time_limit=120)
def reconcile_pipeline(pipeline_id: int) -> None:
    pipeline_reconcile.reconcile(pipeline_id=pipeline_id)


@shared_task(name="deployments.verify_version", time_limit=1800)
def verify_version(version_id: int) -> None:
    verification.advance(version_id)


@shared_task(name="deployments.sweep_versions", time_limit=1800)
def sweep_versions() -> None:
    for version_id in verification.due():
        verification.advance(version_id)


@shared_task(name="deployments.verify_attestation", time_limit=60)
def verify_attestation(attestation_id: int) -> None:
    attestation_verification.advance(attestation_id)


@shared_task(name="deployments.sweep_attestations", time_limit=300)
def sweep_attestations() -> None:
    attestation_verification.sweep()


@shared_task(name="deployments.sweep_scans", time_limit=1800)
def sweep_scans() -> None:
    rescan.sweep()


@shared_task(name="deployments.sweep_form_drafts", time_limit=60)
def sweep_form_drafts() -> None:
    form_drafts.sweep()


@shared_task(name="deployments.sweep_serving_bytes", time_limit=120)
def sweep_serving_bytes() -> None:
    serving_watch.sweep()


@shared_task(name="deployments.advance_import", time_limit=1800)
def advance_import(import_id: int) -> None:
    advance.advance(import_id)


@shared_task(name="deployments.sweep_imports", time_limit=60)
def sweep_imports() -> None:
    advance.sweep()


@shared_task(name="deployments.advance_batch", time_limit=1800)
def advance_batch(job_id: int) -> None:
    batch_advance.advance(job_id=job_id)


@shared_task(name="deployments.sweep_batches", time_limit=1800)
def sweep_batches() -> None:
    batch_advance.sweep()


# What one message for each queue looks for (portal.celery_config).
looks.register("deployments.sweep_batches", batch_advance.has_work)
looks.register("deployments.sweep_caller_keys", caller_keys.has_work)
looks.register("deployments.sweep_golden_runs", golden_runs.has_work)
looks.register_rows("deployments.sweep_attestations", Attestation)
looks.register_rows("deployments.sweep_changes", ChangeRequest)
looks.register_rows("deployments.sweep_deployments", Deployment)
looks.register_rows("deployments.sweep_imports", Import)
looks.register_rows("deployments.sweep_pipelines", Pipeline)
looks.register_rows("deployments.sweep_prometheus", PrometheusReading)
looks.register_rows("deployments.sweep_rollouts", Rollout)
looks.register_rows("deployments.sweep_versions", ModelVersion)
