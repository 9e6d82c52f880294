"""Make clusters match the desired state of deployments: observe, decide, one effect, record, requeue.

Level-triggered: every pass starts from the rows and the live cluster, so a worker that is killed
between any two lines costs one lease and nothing else. Deployments of one cluster that are due share a
pass, so that a listing, a statement and a transaction serve many of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from deployments.delivery.services import record
from deployments.delivery.services.batch import Batch
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError, NotAttempted, Throttled, Unreachable
from portal.core import clock, leases
from portal.core.leases import Lease

BATCH = 500
# Deployments that share a pass.
_PASS_SIZE = 125
# Batches of one cluster handled concurrently.
_LANES = 4
_LEASE_SECONDS = 90
_THREADS = 8
# Constant, so that everything arrives soon after a cluster answers again, however long it was away.
_UNREACHABLE_SECONDS = 5.0
_NOT_TRIED_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Lane:
    """A lane of batches of one cluster, which are handled one after another."""

    cluster_id: int
    batches: Sequence[Collection[int]]


def sweep(*, limit: int = BATCH) -> int:
    """Reconcile the deployments that are due. Returns how many there were.

    A cluster that does not answer costs one timeout per sweep and does not delay other clusters.
    """
    due = leases.due(Deployment, limit=limit)
    lanes = _lanes_of(due)
    if len(lanes) == 1:
        _sweep_lane(lanes[0])
    elif lanes:
        with ThreadPoolExecutor(min(_THREADS, len(lanes))) as pool:
            for future in [pool.submit(_in_thread, lane) for lane in lanes]:
                future.result()
    return len(due)


def _lanes_of(due: Collection[int]) -> list[_Lane]:
    """Divide deployments into lanes, sorted by namespace, so that objects which deployments share are written once."""
    rows = Deployment.objects.filter(pk__in=due).order_by("namespace", "pk")
    by_cluster: dict[int, list[int]] = defaultdict(list)
    for deployment_id, cluster_id in rows.values_list("pk", "cluster_id"):
        by_cluster[cluster_id].append(deployment_id)
    lanes: list[_Lane] = []
    for cluster_id, ids in by_cluster.items():
        batches = [ids[start : start + _PASS_SIZE] for start in range(0, len(ids), _PASS_SIZE)]
        count = min(_LANES, len(batches))
        lanes += [_Lane(cluster_id, batches[lane::_LANES]) for lane in range(count)]
    return lanes


def _in_thread(lane: _Lane) -> None:
    try:
        _sweep_lane(lane)
    finally:
        connection.close()


def _sweep_lane(lane: _Lane) -> None:
    for ids in lane.batches:
        error = _reconcile(ids)
        if error is not None:
            _postpone(lane.cluster_id, error)
            return


def _postpone(cluster_id: int, error: ClusterError) -> None:
    """Delay the other rows of a cluster that does not answer, by its Retry-After at least."""
    seconds = max(_UNREACHABLE_SECONDS, _retry_after(error))
    later = clock.now() + timedelta(seconds=seconds)
    Deployment.objects.filter(
        cluster_id=cluster_id, lease_token="", next_check_at__lt=later
    ).update(next_check_at=later)


def _retry_after(error: ClusterError) -> float:
    return error.retry_after_seconds if isinstance(error, Throttled) else 0.0


def reconcile(*, deployment_id: int) -> bool:
    """Reconcile one deployment. Do nothing if another worker has leased it. Returns False if the cluster did not
    answer.
    """
    return _reconcile([deployment_id]) is None


def _reconcile(ids: Collection[int]) -> ClusterError | None:
    """Reconcile deployments of one cluster. Returns the error if the cluster did not answer."""
    claimed = leases.claim_many(Deployment, ids, seconds=_LEASE_SECONDS)
    if not claimed:
        return None
    batch = Batch(claimed)
    try:
        batch.run()
    except ClusterError as error:
        for lease in claimed.values():
            _back_off(lease, error)
        return error
    for deployment_id, failure in batch.failures.items():
        _back_off(claimed[deployment_id], failure)
    _release(claimed, batch)
    # No answer to a single deployment says as much about its cluster as none to a listing; a refusal does not.
    silent = [error for error in batch.failures.values() if isinstance(error, Unreachable)]
    return silent[0] if silent and len(claimed) == 1 else None


def _back_off(lease: Lease, error: ClusterError) -> None:
    if isinstance(error, NotAttempted):
        soon = clock.now() + timedelta(seconds=_NOT_TRIED_SECONDS)
        leases.release(Deployment, lease, next_check_at=soon)
        return
    record.record_failure(lease.pk, error)
    if isinstance(error, Unreachable):
        wait = _UNREACHABLE_SECONDS
        leases.back_off(Deployment, lease, base_seconds=wait, cap_seconds=wait)
    else:
        leases.back_off(Deployment, lease, least_seconds=_retry_after(error))


def _release(claimed: dict[int, Lease], batch: Batch) -> None:
    by_wait: dict[float | None, list[Lease]] = defaultdict(list)
    for deployment_id, wait in batch.waits.items():
        by_wait[wait].append(claimed[deployment_id])
    at = clock.now()
    for wait, released in by_wait.items():
        later = None if wait is None else at + timedelta(seconds=wait)
        leases.release_many(Deployment, released, next_check_at=later)
