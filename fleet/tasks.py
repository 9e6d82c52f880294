"""Celery's way in. Every task may run twice, late or never; what is due is in the rows."""

from __future__ import annotations

from celery import shared_task

from fleet.services import ledger, rollups, sweeps, telemetry


@shared_task(name="fleet.observe_clusters", time_limit=120)
def observe_clusters() -> None:
    sweeps.observe_due()


@shared_task(name="fleet.poll_metrics", time_limit=60)
def poll_metrics() -> None:
    telemetry.poll()


@shared_task(name="fleet.poll_workloads", time_limit=60)
def poll_workloads(*workload_ids: int) -> None:
    telemetry.poll(workload_ids=workload_ids)


@shared_task(name="fleet.meter", time_limit=300)
def meter() -> None:
    ledger.seal_due()
    ledger.correct_late()


@shared_task(name="fleet.thin_samples", time_limit=300)
def thin_samples() -> None:
    rollups.thin()
