"""Make the cluster what deployments want: observe, decide, one effect, record, look again.

Level-triggered: every look starts from the rows and the live cluster, so a worker that is killed
between any two lines costs one lease and nothing else. All that is due on one cluster is looked at
together, so that a listing, a statement and a transaction serve many deployments.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from deployments.delivery.services import record
from deployments.delivery.services.batch import Batch
from deployments.models import Deployment
from deployments.preflight.services.dry_run import describe_error
from fleet.kube.domain.errors import ClusterError, NotAttempted, Throttled
from portal.core import clock, leases
from portal.core.leases import Lease

logger = logging.getLogger(__name__)

BATCH = 500
# Deployments that are looked at together.
_TOGETHER = 125
# So many parts of one cluster at a time: some wait for it while others write rows.
_LANES = 4
_LEASE_SECONDS = 90
_THREADS = 8
_SILENT_SECONDS = 15.0
_SOON_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Lane:
    """Parts of one cluster that are looked at one after another."""

    cluster_id: int
    parts: Sequence[Collection[int]]


def sweep(*, limit: int = BATCH) -> int:
    """Reconcile what is due. Returns how many rows were looked at.

    A cluster that does not answer costs one timeout per sweep, and holds up no other cluster.
    """
    due = leases.due(Deployment, limit=limit)
    lanes = _lanes_of(due)
    if len(lanes) == 1:
        _sweep_lane(lanes[0])
    elif lanes:
        with ThreadPoolExecutor(min(_THREADS, len(lanes))) as pool:
            for done in [pool.submit(_in_thread, lane) for lane in lanes]:
                done.result()
    return len(due)


def _lanes_of(due: Collection[int]) -> list[_Lane]:
    """Neighbours of a namespace together: what all of them need is then written once."""
    rows = Deployment.objects.filter(pk__in=due).order_by("namespace", "pk")
    by_cluster: dict[int, list[int]] = defaultdict(list)
    for deployment_id, cluster_id in rows.values_list("pk", "cluster_id"):
        by_cluster[cluster_id].append(deployment_id)
    lanes: list[_Lane] = []
    for cluster_id, ids in by_cluster.items():
        parts = [ids[start : start + _TOGETHER] for start in range(0, len(ids), _TOGETHER)]
        lanes += [_Lane(cluster_id, parts[n::_LANES]) for n in range(min(_LANES, len(parts)))]
    return lanes


def _in_thread(lane: _Lane) -> None:
    try:
        _sweep_lane(lane)
    finally:
        connection.close()


def _sweep_lane(lane: _Lane) -> None:
    for ids in lane.parts:
        error = _reconcile(ids)
        if error is not None:
            _postpone(lane.cluster_id, error)
            return


def _postpone(cluster_id: int, error: ClusterError) -> None:
    """The other rows of a cluster that does not answer wait a little, or as long as it asks."""
    seconds = max(_SILENT_SECONDS, _asked_seconds(error))
    later = clock.now() + timedelta(seconds=seconds)
    Deployment.objects.filter(
        cluster_id=cluster_id, lease_token="", next_check_at__lt=later
    ).update(next_check_at=later)


def _asked_seconds(error: ClusterError) -> float:
    return error.retry_after_seconds if isinstance(error, Throttled) else 0.0


def reconcile(*, deployment_id: int) -> bool:
    """Do what is due for one deployment; nothing when another worker holds it.

    Returns False when the cluster did not answer.
    """
    return _reconcile([deployment_id]) is None


def _reconcile(ids: Collection[int]) -> ClusterError | None:
    """Deployments of one cluster. Returns why the cluster could not be asked at all."""
    held = leases.claim_many(Deployment, ids, seconds=_LEASE_SECONDS)
    if not held:
        return None
    batch = Batch(held)
    try:
        batch.run()
    except ClusterError as error:
        for lease in held.values():
            _give_up(lease, error)
        return error
    for deployment_id, failure in batch.failures.items():
        _give_up(held[deployment_id], failure)
    _release(held, batch)
    # One deployment alone that fails says as much of its cluster as a listing does.
    return next(iter(batch.failures.values()), None) if len(held) == 1 else None


def _give_up(lease: Lease, error: ClusterError) -> None:
    if isinstance(error, NotAttempted):
        soon = clock.now() + timedelta(seconds=_SOON_SECONDS)
        leases.release(Deployment, lease, next_check_at=soon)
        return
    record.record_silence(lease.pk, describe_error(error))
    leases.back_off(Deployment, lease, least_seconds=_asked_seconds(error))


def _release(held: dict[int, Lease], batch: Batch) -> None:
    by_wait: dict[float | None, list[Lease]] = defaultdict(list)
    for deployment_id, wait in batch.waits.items():
        by_wait[wait].append(held[deployment_id])
    at = clock.now()
    for wait, given in by_wait.items():
        later = None if wait is None else at + timedelta(seconds=wait)
        leases.release_many(Deployment, given, next_check_at=later)
