"""Celery tasks. Every task may run twice, late or never; the rows determine what is due."""

from __future__ import annotations

from celery import shared_task

from fleet.actions.services import advance as actions
from fleet.budgets.services import alerts
from fleet.costs.services import ledger, open_hours
from fleet.models import FleetAction, PoolOfficeHours
from fleet.observation.services import sweep
from fleet.office_hours.services import keep as office_hours
from fleet.prices.services import refresh as price_refresh
from fleet.telemetry.services import days, energy, gpu_errors, neuron, poll, rollups
from portal.core.sweeps import looks


@shared_task(name="fleet.observe_clusters", time_limit=120)
def observe_clusters() -> None:
    sweep.observe_due()


@shared_task(name="fleet.poll_metrics", time_limit=60)
def poll_metrics() -> None:
    poll.poll()


@shared_task(name="fleet.poll_workloads", time_limit=60)
def poll_workloads(*workload_ids: int) -> None:
    poll.poll(workload_ids=workload_ids)


@shared_task(name="fleet.meter", time_limit=300)
def meter() -> None:
    ledger.seal_due()
    ledger.correct_late()
    ledger.price_late()
    open_hours.renew()


@shared_task(name="fleet.sweep_budgets", time_limit=120)
def sweep_budgets() -> None:
    alerts.sweep()


@shared_task(name="fleet.refresh_prices", time_limit=600)
def refresh_prices() -> None:
    price_refresh.refresh_due()


@shared_task(name="fleet.thin_samples", time_limit=300)
def thin_samples() -> None:
    rollups.thin()
    days.sum_up_finished()
    days.sum_up_running()


@shared_task(name="fleet.read_energy", time_limit=300)
def read_energy() -> None:
    energy.read_due()


@shared_task(name="fleet.read_gpu_errors", time_limit=120)
def read_gpu_errors() -> None:
    gpu_errors.read_all()


@shared_task(name="fleet.read_neuron_use", time_limit=120)
def read_neuron_use() -> None:
    neuron.read_all()


@shared_task(name="fleet.sweep_actions", time_limit=420)
def sweep_actions() -> None:
    actions.sweep()


@shared_task(name="fleet.advance_action", time_limit=420)
def advance_action(action_id: int) -> None:
    actions.advance(action_id=action_id)


@shared_task(name="fleet.keep_office_hours", time_limit=300)
def keep_office_hours() -> None:
    office_hours.sweep()


looks.register_rows("fleet.sweep_actions", FleetAction)
looks.register_rows("fleet.keep_office_hours", PoolOfficeHours)
