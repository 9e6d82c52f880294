"""Applying changes, reconciling deployments, advancing rollouts."""

from __future__ import annotations

from celery import shared_task

from deployments.services import (
    applying,
    golden_runs,
    pipeline_reconcile,
    prometheus_readings,
    reconcile,
    rollout_steps,
)

# As many as a sweep surely ends with in its time; the next one goes on.
_MOST_BATCHES = 4


@shared_task(name="deployments.sweep_changes", time_limit=120)
def sweep_changes() -> None:
    applying.sweep()


@shared_task(name="deployments.sweep_deployments", time_limit=120)
def sweep_deployments() -> None:
    for _ in range(_MOST_BATCHES):
        if reconcile.sweep() < reconcile.BATCH:
            return


@shared_task(name="deployments.sweep_rollouts", time_limit=120)
def sweep_rollouts() -> None:
    rollout_steps.sweep()


@shared_task(name="deployments.apply_change", time_limit=120)
def apply_change(change_id: int) -> None:
    deployment_id = applying.apply_change(change_id=change_id)
    if deployment_id is not None:
        reconcile.reconcile(deployment_id=deployment_id)


@shared_task(name="deployments.reconcile_deployment", time_limit=120)
def reconcile_deployment(deployment_id: int) -> None:
    reconcile.reconcile(deployment_id=deployment_id)


@shared_task(name="deployments.advance_rollout", time_limit=60)
def advance_rollout(rollout_id: int) -> None:
    rollout_steps.advance(rollout_id=rollout_id)


@shared_task(name="deployments.sweep_golden_runs", time_limit=120)
def sweep_golden_runs() -> None:
    golden_runs.sweep()


@shared_task(name="deployments.sweep_prometheus", time_limit=120)
def sweep_prometheus() -> None:
    prometheus_readings.sweep()


@shared_task(name="deployments.sweep_pipelines", time_limit=120)
def sweep_pipelines() -> None:
    pipeline_reconcile.sweep()


@shared_task(name="deployments.reconcile_pipeline", time_limit=120)
def reconcile_pipeline(pipeline_id: int) -> None:
    pipeline_reconcile.reconcile(pipeline_id=pipeline_id)
