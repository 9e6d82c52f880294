"""How deployments answer right now. Every page takes its figures from here, so that no two of them
say different things of one deployment; what is stopped answers nothing, whatever was counted last.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """None is not known, or, for latency and errors, nothing to divide by."""

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
    """None is not known: no pod was read in these seconds."""

    seconds: int
    total: ServingStats | None
    revisions: list[RevisionStats]


def figures_of(found: Sequence[Deployment]) -> dict[int, Figures]:
    """By primary key, over the last minutes, in one query."""
    traffic = _traffic_of(found)
    now = clock.now()
    return {
        deployment.pk: _STOPPED if deployment.is_stopped else _figures(traffic[deployment.pk], now)
        for deployment in found
    }


def figures_together(found: Sequence[Deployment]) -> Figures:
    """The sum of what the rows of these deployments show."""
    traffic = _traffic_of([one for one in found if not one.is_stopped])
    together = _figures([one for parts in traffic.values() for one in parts], clock.now())
    rates = [one.requests_per_second for one in figures_of(found).values()]
    known = [rate for rate in rates if rate is not None]
    return Figures(sum(known) if known else None, together.latency_ms, together.error_ratio)


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
    """Stable, then the candidate."""
    wanted = (deployment.stable_revision, deployment.candidate_revision)
    return [revision for revision in wanted if revision is not None]


def _traffic_of(found: Sequence[Deployment]) -> dict[int, list[Traffic]]:
    """What users were answered: copies to a shadow are nobody's requests."""
    answering = {one.pk: _answering(one) for one in found}
    traffic = current.traffic_of([key for keys in answering.values() for key in keys])
    return {pk: [traffic[key] for key in keys if key in traffic] for pk, keys in answering.items()}


def _answering(deployment: Deployment) -> list[WorkloadKey]:
    keys = workload_keys(deployment)
    return keys[:1] if deployments.is_mirrored(deployment) else keys


def _figures(found: Sequence[Traffic], now: datetime) -> Figures:
    if not found:
        return Figures(None, None, None)
    span = max(1.0, (now - min(one.since for one in found)).total_seconds())
    success = sum(one.success for one in found)
    total = success + sum(one.failure for one in found)
    duration = sum(one.duration_us for one in found)
    return Figures(
        requests_per_second=total / span,
        latency_ms=duration / success / 1000 if success else None,
        error_ratio=(total - success) / total if total else None,
    )


def stats_of(deployment: Deployment, revisions: Sequence[RevisionStatus]) -> ServingStats | None:
    """Over all these revisions together. Copies to a shadow are nobody's requests: beside stable it
    does not count.
    """
    if deployment.is_stopped:
        return _nothing()
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


def _nothing() -> ServingStats:
    """Of what is stopped: no pod, no request, and nothing to divide by."""
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
            RevisionStats(one.number, one.role, stats_of(deployment, [one])) for one in revisions
        ],
    )
