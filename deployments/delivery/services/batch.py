"""One look at deployments of one cluster, with the effects that it calls for."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from deployments.delivery.domain.reconcile import Next, Step
from deployments.delivery.services import crash_logs, effects, git_backend, record
from deployments.delivery.services.effects import Result
from deployments.delivery.services.git_backend import CommitResult
from deployments.delivery.services.observe import observe, observe_objects
from deployments.delivery.services.reconcile_state import ReconcileState
from deployments.delivery.services.snapshot import Look
from deployments.manifests.services.serving_bytes import NotAsApproved
from deployments.models import Deployment
from deployments.preflight.services.dry_run import describe_error
from fleet.kube.domain.errors import (
    ClusterError,
    NotAllowed,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
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
_HANDED_SECONDS = 10.0
# Sending the same again cannot help soon; someone must change something first.
# Credentials that expired between two calls (Refused) say nothing of the revision.
_HOPELESS = (ObjectInvalid, ObjectConflict, ObjectNotFound, NotAllowed, NotAsApproved)
_PUSHES: Final = (Step.PUSH_REVISION, Step.PUSH_ROUTE)
_ENDS: Final = (Step.NONE, Step.FINISH_RETIRING)
_RELATED = (
    "team",
    "cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
)


class Batch:
    """Afterwards each deployment that was held is in `waits` (seconds until its next look, None for
    never) or in `failures`, unless its lease was lost.
    """

    def __init__(self, held: Mapping[int, Lease]) -> None:
        self._held = held
        self._at = clock.now()
        self._jobs: dict[int, ReconcileState] = {}
        self._handed: list[ReconcileState] = []
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
            by_step: dict[Step, list[tuple[ReconcileState, Next]]] = defaultdict(list)
            for job in self._jobs.values():
                found = job.decide()
                by_step[found.step].append((job, found))
            ends = [job for step in _ENDS for job, _ in by_step.get(step, [])]
            unchecked = [job for job in ends if job.must_check(self._at)]
            self._check_all(unchecked)
            self._settle(_without(by_step.pop(Step.NONE, []), unchecked))
            self._finish(_without(by_step.pop(Step.FINISH_RETIRING, []), unchecked))
            self._act(by_step)
            self._record_handed()
        for pk in self._jobs:
            self.waits[pk] = _MOVING_SECONDS

    def _load(self, pks: Sequence[int]) -> None:
        if not pks:
            return
        rows = list(Deployment.objects.select_related(*_RELATED).filter(pk__in=pks))
        doors = git_backend.backends_for(rows)
        for row in rows:
            if row.is_retired:
                self._end(row.pk, None)
                continue
            job = self._jobs.get(row.pk)
            fresh = ReconcileState(row, is_direct=row.pk not in doors)
            if job is not None:
                fresh.refusals = job.refusals
                fresh.see(job.observation, self._at)
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
            self._jobs[pk].see(observation, self._at)

    def _check_all(self, jobs: Sequence[ReconcileState]) -> None:
        """Everything that the portal may have written of them, not only what serves."""
        if jobs:
            found = observe_objects([job.deployment for job in jobs])
            for job in jobs:
                job.see_objects(found[job.deployment.pk], self._at)

    def _act(self, by_step: Mapping[Step, Sequence[tuple[ReconcileState, Next]]]) -> None:
        for step, items in by_step.items():
            told = [f"{job.deployment.pk}/r{found.revision_number}" for job, found in items]
            logger.info("%s deployments=%s", step, ",".join(told))
        self._push_revisions(by_step.get(Step.PUSH_REVISION, []))
        self._push_routes([job for job, _ in by_step.get(Step.PUSH_ROUTE, [])])
        for step, items in by_step.items():
            if step not in _PUSHES:
                self._delete(step, items)

    def _push_revisions(self, items: Sequence[tuple[ReconcileState, Next]]) -> None:
        if not items:
            return
        pushes = [job.push_of(found.revision_number) for job, found in items]
        results = effects.push_revisions(pushes)
        for (job, found), result in zip(items, results, strict=True):
            if isinstance(result, _HOPELESS):
                self._refuse(job, found.revision_number, result)
            else:
                job.to_heal.discard(found.revision_number)
                self._fold(job, result)

    def _push_routes(self, jobs: Sequence[ReconcileState]) -> None:
        if not jobs:
            return
        results = effects.push_routes([job.deployment for job in jobs])
        for job, result in zip(jobs, results, strict=True):
            job.is_route_edited = False
            self._fold(job, result)

    def _fold(self, job: ReconcileState, result: Result) -> None:
        """What the cluster answered to a push is what it holds: no need to ask again."""
        if isinstance(result, ClusterError):
            self._fail(job, result)
        elif isinstance(result, CommitResult):
            self._handed.append(job)
        else:
            job.observation = job.observation.after_push(result)

    def _refuse(self, job: ReconcileState, number: int, error: ClusterError) -> None:
        is_ours = isinstance(error, NotAsApproved)
        job.refusals[number] = (
            error.message if is_ours else f"the cluster rejected it: {describe_error(error)}"
        )
        job.to_heal.discard(number)
        if number not in job.observation.workloads:
            revision = next(one for one in job.revisions if one.number == number)
            effects.forget_revision(job.deployment, revision)

    def _delete(self, step: Step, items: Sequence[tuple[ReconcileState, Next]]) -> None:
        for job, found in items:
            try:
                handed = self._remove(job, step, found.revision_number)
            except ClusterError as error:
                self._fail(job, error)
            else:
                self._handed += [job] if handed is not None else []
        self._observe([job.deployment.pk for job, _ in items if job.deployment.pk in self._jobs])

    def _remove(self, job: ReconcileState, step: Step, number: int) -> CommitResult | None:
        if step == Step.DELETE_ROUTE:
            return effects.delete_route(job.deployment)
        if step == Step.DELETE_REVISION:
            workload = job.observation.workloads[number]
            return effects.delete_revision(job.deployment, workload)
        self._prune(job)
        return None

    def _settle(self, jobs: Sequence[ReconcileState]) -> None:
        wanted = {job.deployment.pk: (job.deployment, job.wanted_manifests) for job in jobs}
        effects.settle(wanted)
        self._record(jobs)

    def _record_handed(self) -> None:
        """What is in Git by now is an operator's to apply: the next look finds what came of it."""
        handed, self._handed = self._handed, []
        self._record(handed)
        for job in handed:
            self.waits[job.deployment.pk] = _HANDED_SECONDS

    def _prune(self, job: ReconcileState) -> None:
        """Never in Git: there the whole folder is written at once."""
        while job.strays:
            effects.delete(job.deployment, job.strays[0])
            gone = job.strays.pop(0)
            job.pruned.append(f"{gone['kind']} {gone['metadata']['name']}")

    def _record(self, jobs: Sequence[ReconcileState]) -> None:
        if not jobs:
            return
        for job in jobs:
            job.observation = crash_logs.explain(job.deployment, job.observation)
        looks = [Look(job.deployment, job.observation, job.refusals, job.found()) for job in jobs]
        settled = record.record(looks, self._held)
        for job in jobs:
            pk = job.deployment.pk
            self._end(pk, _wait_of(job.deployment, is_settled=settled.get(pk, False)))

    def _finish(self, jobs: Sequence[ReconcileState]) -> None:
        for job in jobs:
            record.record_retired(job.deployment, self._held[job.deployment.pk])
            self._end(job.deployment.pk, None)

    def _fail(self, job: ReconcileState, error: ClusterError) -> None:
        self.failures[job.deployment.pk] = error
        del self._jobs[job.deployment.pk]

    def _end(self, pk: int, wait: float | None) -> None:
        self.waits[pk] = wait
        self._jobs.pop(pk, None)


def _without(
    items: Sequence[tuple[ReconcileState, Next]], unchecked: Sequence[ReconcileState]
) -> list[ReconcileState]:
    return [job for job, _ in items if job not in unchecked]


def _wait_of(deployment: Deployment, *, is_settled: bool) -> float:
    if not is_settled:
        return _MOVING_SECONDS
    seen_at = deployment.cluster.watch_seen_at
    is_watched = seen_at is not None and clock.now() - seen_at < _WATCH_IS_FRESH
    return _SETTLED_SECONDS if is_watched else _UNWATCHED_SECONDS
