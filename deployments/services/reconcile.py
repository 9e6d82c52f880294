"""Make the cluster what a deployment wants: observe, decide, one effect, record, look again.

Level-triggered: every look starts from the rows and the live cluster, so a worker that is killed
between any two lines costs one lease and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from django.core.exceptions import ObjectDoesNotExist

from deployments.domain import reconciliation
from deployments.domain.manifests import routes
from deployments.domain.reconciliation import Next, Seen, Step, Wanted
from deployments.models import Deployment, Revision
from deployments.selectors import plans
from deployments.services import cluster_effects, recording
from deployments.services.dry_run import words_of
from deployments.services.observing import Observation, observe
from fleet.domain.cluster_errors import (
    ClusterError,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Refused,
)
from portal.core import clock, leases
from portal.core.errors import NotFound
from portal.core.leases import Lease

logger = logging.getLogger(__name__)

_LEASE_SECONDS = 90
_MOST_EFFECTS = 12
# Where a watcher tells of every change, looking again is only a safety net.
_SETTLED_SECONDS = 300.0
_UNWATCHED_SECONDS = 30.0
_WATCH_IS_FRESH = timedelta(seconds=60)
_SILENT_SECONDS = 15.0
_MOVING_SECONDS = 3.0
# Sending the same again cannot help soon; someone must change something first.
_HOPELESS = (ObjectInvalid, ObjectConflict, ObjectNotFound, Refused)
_RELATED = (
    "team",
    "cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
)


def sweep(*, limit: int = 100) -> int:
    """Reconcile what is due. Returns how many rows were looked at.

    A cluster that does not answer costs one timeout per sweep; its other rows wait a little.
    """
    due = leases.due(Deployment, limit=limit)
    rows = dict(Deployment.objects.filter(pk__in=due).values_list("pk", "cluster_id"))
    silent: set[int] = set()
    for deployment_id in due:
        cluster_id = rows[deployment_id]
        if cluster_id in silent:
            _postpone(deployment_id)
        elif not reconcile(deployment_id=deployment_id):
            silent.add(cluster_id)
    return len(due)


def _postpone(deployment_id: int) -> None:
    later = clock.now() + timedelta(seconds=_SILENT_SECONDS)
    Deployment.objects.filter(pk=deployment_id, lease_token="").update(next_check_at=later)


def reconcile(*, deployment_id: int) -> bool:
    """Do what is due for one deployment; nothing when another worker holds it.

    Returns False when the cluster did not answer.
    """
    lease = leases.claim(Deployment, deployment_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return True
    try:
        wait = _run(lease)
    except ClusterError as error:
        recording.record_silence(deployment_id, words_of(error))
        leases.back_off(Deployment, lease)
        return False
    at = None if wait is None else clock.now() + timedelta(seconds=wait)
    leases.release(Deployment, lease, next_check_at=at)
    return True


def _run(lease: Lease) -> float | None:
    """Seconds until the next look; None when there will be nothing left to look at."""
    refusals: dict[int, str] = {}
    for _ in range(_MOST_EFFECTS):
        deployment = _load(lease.pk)
        if deployment.is_retired:
            return None
        observation = observe(deployment)
        if not leases.is_held(Deployment, lease):
            return _MOVING_SECONDS
        found = reconciliation.decide(*_compare(deployment, observation, refusals))
        if found.step == Step.FINISH_RETIRING:
            recording.record_retired(deployment, lease)
            return None
        if found.step == Step.NONE:
            return _record(deployment, observation, lease, refusals)
        _act(deployment, observation, found, refusals)
    return _MOVING_SECONDS


def _record(
    deployment: Deployment, observation: Observation, lease: Lease, refusals: Mapping[int, str]
) -> float:
    is_settled = recording.record(deployment, observation, lease, refusals)
    if not is_settled:
        return _MOVING_SECONDS
    seen_at = deployment.cluster.watch_seen_at
    is_watched = seen_at is not None and clock.now() - seen_at < _WATCH_IS_FRESH
    return _SETTLED_SECONDS if is_watched else _UNWATCHED_SECONDS


def _load(deployment_id: int) -> Deployment:
    try:
        return Deployment.objects.select_related(*_RELATED).get(pk=deployment_id)
    except ObjectDoesNotExist as error:
        raise NotFound(f"There is no deployment {deployment_id}.") from error


def _compare(
    deployment: Deployment, observation: Observation, refused: Mapping[int, str]
) -> tuple[Wanted, Seen]:
    """A revision that the cluster refused in this run counts as pushed, so that the rest goes on."""
    revisions = [one for one in _revisions_of(deployment) if one.number not in refused]
    if deployment.is_retiring:
        revisions = []
    place = plans.place_of(deployment)
    backends = plans.backends_of(deployment)
    wanted = Wanted(
        digests={one.number: cluster_effects.main_digest(one) for one in revisions},
        weights=routes.weights_of(place, backends),
        is_retiring=deployment.is_retiring,
    )
    wanted_numbers = {one.number for one in revisions} - set(refused)
    seen = {
        number: workload.digest
        for number, workload in observation.workloads.items()
        if number not in refused and (number in wanted_numbers or not workload.is_going)
    }
    is_going = any(workload.is_going for workload in observation.workloads.values())
    return wanted, Seen(digests=seen, weights=observation.weights, is_going=is_going)


def _revisions_of(deployment: Deployment) -> list[Revision]:
    found = [deployment.stable_revision, deployment.candidate_revision]
    revisions = [revision for revision in found if revision is not None]
    for revision in revisions:
        # The same row, already loaded with its team and cluster.
        revision.deployment = deployment
    return revisions


def _act(
    deployment: Deployment, observation: Observation, found: Next, refusals: dict[int, str]
) -> None:
    logger.info("deployment=%s %s r%s", deployment.pk, found.step, found.revision_number)
    if found.step == Step.PUSH_ROUTE:
        cluster_effects.push_route(deployment)
    elif found.step == Step.DELETE_ROUTE:
        cluster_effects.delete_route(deployment)
    elif found.step == Step.DELETE_REVISION:
        workload = observation.workloads[found.revision_number]
        cluster_effects.delete_revision(deployment, workload)
    else:
        _push(deployment, observation, found.revision_number, refusals)


def _push(
    deployment: Deployment, observation: Observation, number: int, refusals: dict[int, str]
) -> None:
    revision = next(one for one in _revisions_of(deployment) if one.number == number)
    try:
        cluster_effects.push_revision(revision)
    except _HOPELESS as error:
        refusals[number] = words_of(error)
        if number not in observation.workloads:
            cluster_effects.forget_revision(deployment, revision)
