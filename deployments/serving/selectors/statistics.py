"""Current request statistics of deployments. All pages take their figures from here, so that no two
disagree about a deployment. A stopped deployment has no traffic, whatever was counted last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from deployments.models import Deployment, Revision
from deployments.serving.selectors import deployments
from deployments.serving.selectors.deployments import RevisionStatus
from fleet.telemetry.domain.counters import ServingStats
from fleet.telemetry.selectors import current, requests
from fleet.telemetry.selectors.current import Traffic, WorkloadKey
from portal.core import clock

WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of current traffic. None means unknown; for latency and errors also no requests to divide by."""

    requests_per_second: float | None
    latency_ms: float | None
    error_ratio: float | None


_STOPPED = Figures(requests_per_second=0.0, latency_ms=None, error_ratio=None)


@dataclass(frozen=True, slots=True)
class RevisionStats:
    number: int
    role: str
    stats: ServingStats | None


@dataclass(frozen=True, slots=True)
class DeploymentStats:
    """Statistics of a deployment over the last `seconds`. None means unknown: no pod was read in this time."""

    seconds: int
    total: ServingStats | None
    revisions: list[RevisionStats]


def figures_of(rows: Sequence[Deployment]) -> dict[int, Figures]:
    """Return the figures by primary key, over the last minutes, in one query."""
    return _figures_by_pk(rows, _traffic_of(rows), clock.now())


def total_figures(rows: Sequence[Deployment]) -> Figures:
    """Return the figures of these deployments together; the rate is the sum of their rates."""
    traffic, now = _traffic_of(rows), clock.now()
    running = [item for row in rows if not row.is_stopped for item in traffic[row.pk]]
    total = _figures(running, now)
    rates = [figure.requests_per_second for figure in _figures_by_pk(rows, traffic, now).values()]
    known = [rate for rate in rates if rate is not None]
    return Figures(sum(known) if known else None, total.latency_ms, total.error_ratio)


def _figures_by_pk(
    rows: Sequence[Deployment], traffic: Mapping[int, Sequence[Traffic]], now: datetime
) -> dict[int, Figures]:
    return {row.pk: _STOPPED if row.is_stopped else _figures(traffic[row.pk], now) for row in rows}


def workload_keys(deployment: Deployment) -> list[WorkloadKey]:
    return [
        WorkloadKey(
            deployment.cluster_id,
            deployment.namespace,
            f"{deployment.name}-r{revision.number}",
        )
        for revision in desired_revisions(deployment)
    ]


def desired_revisions(deployment: Deployment) -> list[Revision]:
    """Return the stable revision, then the candidate and its baseline."""
    revisions = (
        deployment.stable_revision,
        deployment.candidate_revision,
        deployment.baseline_revision,
    )
    return [revision for revision in revisions if revision is not None]


def _traffic_of(rows: Sequence[Deployment]) -> dict[int, list[Traffic]]:
    """Read the traffic of users: requests that are mirrored to a shadow do not count."""
    keys_by_pk = {row.pk: _keys_with_users(row) for row in rows}
    traffic = current.sum_traffic([key for keys in keys_by_pk.values() for key in keys])
    return {pk: [traffic[key] for key in keys if key in traffic] for pk, keys in keys_by_pk.items()}


def _keys_with_users(deployment: Deployment) -> list[WorkloadKey]:
    keys = workload_keys(deployment)
    return keys[:1] if deployments.is_mirrored(deployment) else keys


def _figures(traffic: Sequence[Traffic], now: datetime) -> Figures:
    if not traffic:
        return Figures(None, None, None)
    span = max(1.0, (now - min(item.since for item in traffic)).total_seconds())
    success = sum(item.success for item in traffic)
    total = success + sum(item.failure for item in traffic)
    duration = sum(item.duration_us for item in traffic)
    return Figures(
        requests_per_second=total / span,
        latency_ms=duration / success / 1000 if success else None,
        error_ratio=(total - success) / total if total else None,
    )


def stats_of(deployment: Deployment, revisions: Sequence[RevisionStatus]) -> ServingStats | None:
    """Return the figures over all these revisions, without a shadow: its requests are mirrored."""
    if deployment.is_stopped:
        return _without_traffic()
    if not revisions:
        return None
    if len(revisions) > 1 and deployments.is_mirrored(deployment):
        revisions = [revision for revision in revisions if revision.role == "stable"]
    return requests.stats(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        names=[revision.workload_name for revision in revisions],
        seconds=WINDOW_SECONDS,
    )


def _without_traffic() -> ServingStats:
    """Return the figures of a stopped deployment: no pods and no requests."""
    return ServingStats(
        seconds=WINDOW_SECONDS,
        requests_per_second=0.0,
        error_ratio=None,
        mean_latency_ms=None,
        queue_ms=None,
        input_ms=None,
        compute_ms=None,
        output_ms=None,
        mean_batch_size=None,
        p95_ms=None,
        p95_source="",
        busy_ratio=0.0,
        busy_source="stopped",
        pending_requests=0,
        success=0,
        failure=0,
        inferences=0,
        pods=0,
        latest_at=None,
    )


def by_revision(deployment: Deployment) -> DeploymentStats:
    revisions = deployments.revisions_of(deployment)
    return DeploymentStats(
        seconds=WINDOW_SECONDS,
        total=stats_of(deployment, revisions),
        revisions=[
            RevisionStats(revision.number, revision.role, stats_of(deployment, [revision]))
            for revision in revisions
        ],
    )
