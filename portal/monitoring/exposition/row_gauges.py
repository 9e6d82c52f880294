"""Rows that wait for a worker, by kind, and uploads under way.

The kinds are those whose sweeps run each few seconds. Each row here is one that its sweep takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.db.models import Count, QuerySet
from prometheus_client.core import GaugeMetricFamily, Metric

from deployments.models import (
    BatchJob,
    ChangeRequest,
    Deployment,
    GoldenRun,
    Import,
    ModelVersion,
    Pipeline,
    PrometheusReading,
    Rollout,
    ServiceTarget,
)
from deployments.states import VersionState
from fleet.actions.selectors import actions
from fleet.clusters.selectors import clusters
from fleet.office_hours.selectors import office_hours
from portal.core import clock, leases
from portal.core.leases import Backlog
from portal.notifications.models import Delivery

_IN_PROGRESS: Final = (VersionState.UPLOADING, VersionState.VERIFYING)


def _of(rows: Callable[[], QuerySet[Any]]) -> Callable[[], Backlog]:
    return lambda: leases.backlog(rows())


_KINDS: Final[Mapping[str, Callable[[], Backlog]]] = {
    "batch-job": _of(BatchJob.objects.all),
    "change-request": _of(ChangeRequest.objects.all),
    "cluster": clusters.observation_backlog,
    "deployment": _of(Deployment.objects.all),
    "fleet-action": actions.backlog,
    "golden-run": _of(GoldenRun.objects.all),
    "import": _of(Import.objects.all),
    "office-hours": office_hours.backlog,
    "notification": _of(Delivery.objects.all),
    "pipeline": _of(Pipeline.objects.all),
    "prometheus-reading": _of(PrometheusReading.objects.all),
    "rollout": _of(Rollout.objects.all),
    "target": _of(lambda: ServiceTarget.objects.filter(deployment__is_retired=False)),
    "version": _of(ModelVersion.objects.all),
}


def collect() -> Iterator[Metric]:
    due = GaugeMetricFamily(
        "slipway_reconcile_due", "Rows that are due and that no worker holds.", labels=["kind"]
    )
    lag = GaugeMetricFamily(
        "slipway_reconcile_lag_seconds",
        "Seconds since the oldest due row became due; 0 if none is due.",
        labels=["kind"],
    )
    for kind, backlog_of in _KINDS.items():
        backlog = backlog_of()
        due.add_metric([kind], backlog.count)
        late = (clock.now() - backlog.oldest).total_seconds() if backlog.oldest else 0.0
        lag.add_metric([kind], max(0.0, late))
    yield due
    yield lag
    yield _uploads()


def _uploads() -> Metric:
    uploads = GaugeMetricFamily(
        "slipway_uploads_in_progress",
        "Versions that are being uploaded or verified.",
        labels=["state"],
    )
    rows = ModelVersion.objects.filter(state__in=_IN_PROGRESS).order_by().values("state")
    counts = {row["state"]: row["count"] for row in rows.annotate(count=Count("pk"))}
    for state in _IN_PROGRESS:
        uploads.add_metric([state], counts.get(state, 0))
    return uploads
