"""One look at deployments of one cluster, with the effects that it calls for."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from deployments.domain import reconciliation
from deployments.domain.manifests import routes
from deployments.domain.manifests.parts import Manifest
from deployments.domain.reconciliation import Next, Seen, Step, Wanted
from deployments.models import Deployment, Revision
from deployments.selectors import plans
from deployments.services import cluster_effects, recording
from deployments.services.cluster_effects import Push, Result
from deployments.services.dry_run import words_of
from deployments.services.observing import Observation, observe
from deployments.services.recording import Look
from fleet.domain.cluster_errors import (
    ClusterError,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Refused,
)
from portal.core import clock
from portal.core.leases import Lease

logger = logging.getLogger(__name__)

_MOST_EFFECTS = 12
# Where a watcher tells of every change, looking again is only a safety net.
_SETTLED_SECONDS = 300.0
_UNWATCHED_SECONDS = 30.0
_WATCH_IS_FRESH = timedelta(seconds=60)
_MOVING_SECONDS = 3.0
# Sending the same again cannot help soon; someone must change something first.
_HOPELESS = (ObjectInvalid, ObjectConflict, ObjectNotFound, Refused)
_PUSHES: Final = (Step.PUSH_REVISION, Step.PUSH_ROUTE)
_RELATED = (
    "team",
    "cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
)


class Job:
    """A deployment in a batch: its row, what was seen of it, and what the cluster refused."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.observation = Observation({}, {}, None)
        self.refusals: dict[int, str] = {}
        self._manifests: dict[int, list[Manifest]] = {}

    @property
    def revisions(self) -> list[Revision]:
        found = [self.deployment.stable_revision, self.deployment.candidate_revision]
        revisions = [revision for revision in found if revision is not None]
        for revision in revisions:
            # The same row, already loaded with its team and cluster.
            revision.deployment = self.deployment
        return revisions

    def manifests_of(self, revision: Revision) -> list[Manifest]:
        if revision.number not in self._manifests:
            self._manifests[revision.number] = plans.manifests_of(revision)
        return self._manifests[revision.number]

    def decide(self) -> Next:
        return reconciliation.decide(*self._compare())

    def _compare(self) -> tuple[Wanted, Seen]:
        """A revision that the cluster refused in this run counts as pushed, so that the rest goes
        on.
        """
        deployment, refused = self.deployment, self.refusals
        revisions = [one for one in self.revisions if one.number not in refused]
        if deployment.is_retiring or deployment.is_stopped:
            revisions = []
        backends = plans.backends_of(deployment)
        wanted = Wanted(
            digests={
                one.number: cluster_effects.main_digest(self.manifests_of(one)) for one in revisions
            },
            weights=routes.weights_of(plans.place_of(deployment), backends),
            is_retiring=deployment.is_retiring,
            is_stopped=deployment.is_stopped,
        )
        numbers = set(wanted.digests)
        workloads = self.observation.workloads
        seen = {
            number: workload.digest
            for number, workload in workloads.items()
            if number not in refused and (number in numbers or not workload.is_going)
        }
        is_going = any(workload.is_going for workload in workloads.values())
        return wanted, Seen(digests=seen, weights=self.observation.weights, is_going=is_going)

    def push_of(self, number: int) -> Push:
        revision = next(one for one in self.revisions if one.number == number)
        is_known = number in self.observation.workloads
        return Push(revision, self.manifests_of(revision), is_known=is_known)


class Batch:
    """Afterwards each deployment that was held is in `waits` (seconds until its next look, None for
    never) or in `failures`, unless its lease was lost.
    """

    def __init__(self, held: Mapping[int, Lease]) -> None:
        self._held = held
        self._jobs: dict[int, Job] = {}
        self.waits: dict[int, float | None] = {}
        self.failures: dict[int, ClusterError] = {}

    def run(self) -> None:
        """Raises ClusterError when the cluster cannot be asked at all."""
        self._load(list(self._held))
        self._observe(list(self._jobs))
        for _ in range(_MOST_EFFECTS):
            if not self._jobs:
                return
            self._keep_fresh()
            by_step: dict[Step, list[tuple[Job, Next]]] = defaultdict(list)
            for job in self._jobs.values():
                found = job.decide()
                by_step[found.step].append((job, found))
            self._record([job for job, _ in by_step.pop(Step.NONE, [])])
            self._finish([job for job, _ in by_step.pop(Step.FINISH_RETIRING, [])])
            self._act(by_step)
        for pk in self._jobs:
            self.waits[pk] = _MOVING_SECONDS

    def _load(self, pks: Sequence[int]) -> None:
        for row in Deployment.objects.select_related(*_RELATED).filter(pk__in=pks):
            if row.is_retired:
                self._end(row.pk, None)
                continue
            job = self._jobs.get(row.pk)
            fresh = Job(row)
            if job is not None:
                fresh.observation, fresh.refusals = job.observation, job.refusals
            self._jobs[row.pk] = fresh

    def _keep_fresh(self) -> None:
        """Leave what another worker holds by now, and read again what people changed meanwhile."""
        token = next(iter(self._held.values())).token
        rows = Deployment.objects.filter(
            pk__in=self._jobs, lease_token=token, lease_until__gt=clock.now()
        )
        now = dict(rows.values_list("pk", "desired_generation"))
        for pk in self._jobs.keys() - now.keys():
            del self._jobs[pk]
        changed = [
            pk for pk, job in self._jobs.items() if job.deployment.desired_generation != now[pk]
        ]
        self._load(changed)

    def _observe(self, pks: Sequence[int]) -> None:
        if not pks:
            return
        found = observe([self._jobs[pk].deployment for pk in pks])
        for pk, observation in found.items():
            self._jobs[pk].observation = observation

    def _act(self, by_step: Mapping[Step, Sequence[tuple[Job, Next]]]) -> None:
        for step, items in by_step.items():
            told = [f"{job.deployment.pk}/r{found.revision_number}" for job, found in items]
            logger.info("%s deployments=%s", step, ",".join(told))
        self._push_revisions(by_step.get(Step.PUSH_REVISION, []))
        self._push_routes([job for job, _ in by_step.get(Step.PUSH_ROUTE, [])])
        for step, items in by_step.items():
            if step not in _PUSHES:
                self._delete(step, items)

    def _push_revisions(self, items: Sequence[tuple[Job, Next]]) -> None:
        if not items:
            return
        pushes = [job.push_of(found.revision_number) for job, found in items]
        results = cluster_effects.push_revisions(pushes)
        for (job, found), result in zip(items, results, strict=True):
            if isinstance(result, _HOPELESS):
                self._refuse(job, found.revision_number, result)
            else:
                self._fold(job, result)

    def _push_routes(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        results = cluster_effects.push_routes([job.deployment for job in jobs])
        for job, result in zip(jobs, results, strict=True):
            self._fold(job, result)

    def _fold(self, job: Job, result: Result) -> None:
        """What the cluster answered to a push is what it holds: no need to ask again."""
        if isinstance(result, ClusterError):
            self._fail(job, result)
        else:
            job.observation = job.observation.after_push(result)

    def _refuse(self, job: Job, number: int, error: ClusterError) -> None:
        job.refusals[number] = words_of(error)
        if number not in job.observation.workloads:
            revision = next(one for one in job.revisions if one.number == number)
            cluster_effects.forget_revision(job.deployment, revision)

    def _delete(self, step: Step, items: Sequence[tuple[Job, Next]]) -> None:
        for job, found in items:
            try:
                if step == Step.DELETE_ROUTE:
                    cluster_effects.delete_route(job.deployment)
                else:
                    workload = job.observation.workloads[found.revision_number]
                    cluster_effects.delete_revision(job.deployment, workload)
            except ClusterError as error:
                self._fail(job, error)
        self._observe([job.deployment.pk for job, _ in items if job.deployment.pk in self._jobs])

    def _record(self, jobs: Sequence[Job]) -> None:
        looks = [Look(job.deployment, job.observation, job.refusals) for job in jobs]
        settled = recording.record(looks, self._held)
        for job in jobs:
            pk = job.deployment.pk
            self._end(pk, _wait_of(job.deployment, is_settled=settled.get(pk, False)))

    def _finish(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            recording.record_retired(job.deployment, self._held[job.deployment.pk])
            self._end(job.deployment.pk, None)

    def _fail(self, job: Job, error: ClusterError) -> None:
        self.failures[job.deployment.pk] = error
        del self._jobs[job.deployment.pk]

    def _end(self, pk: int, wait: float | None) -> None:
        self.waits[pk] = wait
        self._jobs.pop(pk, None)


def _wait_of(deployment: Deployment, *, is_settled: bool) -> float:
    if not is_settled:
        return _MOVING_SECONDS
    seen_at = deployment.cluster.watch_seen_at
    is_watched = seen_at is not None and clock.now() - seen_at < _WATCH_IS_FRESH
    return _SETTLED_SECONDS if is_watched else _UNWATCHED_SECONDS
