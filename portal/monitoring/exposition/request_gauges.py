"""Batch jobs, fleet actions and office hours: how many are in which state, and how long the oldest has waited for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from django.db.models import Count, Min
from prometheus_client.core import GaugeMetricFamily, Metric

from deployments.batch.domain.states import FINAL, BatchState
from deployments.models import BatchJob, ChangeRequest
from deployments.states import ChangeState
from fleet.actions.selectors import actions
from fleet.office_hours.selectors import office_hours
from portal.core import clock

# A final state only grows, so it is no state of now.
_OPEN: Final = [state for state in BatchState if state not in FINAL]


def collect() -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "slipway_batch_jobs", "Batch jobs that have not ended.", labels=["state"]
    )
    rows = BatchJob.objects.filter(state__in=_OPEN).order_by().values_list("state")
    counts = dict(rows.annotate(Count("pk")))
    for state in _OPEN:
        jobs.add_metric([state], counts.get(state, 0))
    yield jobs
    fleet = GaugeMetricFamily(
        "slipway_fleet_actions", "Fleet actions that have not ended.", labels=["state"]
    )
    for name, count in actions.count_open().items():
        fleet.add_metric([name], count)
    yield fleet
    hours = GaugeMetricFamily(
        "slipway_scheduled_pools", "Node pools and groups with office hours.", labels=["state"]
    )
    for name, count in office_hours.count_by_state().items():
        hours.add_metric([name], count)
    yield hours
    yield _waiting()


def _waiting() -> Metric:
    """Return how long the oldest undecided request of each kind has waited."""
    waiting = GaugeMetricFamily(
        "slipway_approval_waiting_seconds",
        "How long the oldest request has waited for an approver; 0: none waits.",
        labels=["kind"],
    )
    changes = ChangeRequest.objects.filter(state=ChangeState.SUBMITTED)
    jobs = BatchJob.objects.filter(state=BatchState.SUBMITTED)
    for kind, at in (
        ("change-request", changes.aggregate(at=Min("submitted_at"))["at"]),
        ("batch-job", jobs.aggregate(at=Min("created_at"))["at"]),
        ("fleet-action", actions.oldest_waiting_since()),
    ):
        waiting.add_metric([kind], _age(at))
    return waiting


def _age(at: datetime | None) -> float:
    return max(0.0, (clock.now() - at).total_seconds()) if at else 0.0
