"""The load test of a version in a Job on a cluster: the last step of its verification, which waits for it.

The version's lease drives it: each pass takes the next step and requeues, so that a worker may die anywhere.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

from deployments.models import LoadTestRun, ModelVersion
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.examined_version import ExaminedVersion
from deployments.registry.domain.load_tests.results import LoadTest
from deployments.registry.services.examination.checklist import Checklist
from portal.core import clock

STEP: Final = "Load test"
_SOON: Final = timedelta(seconds=5)
_LATER: Final = timedelta(seconds=15)
_FIRST_MINUTES: Final = timedelta(minutes=2)


class Runner(Protocol):
    """The runner of load tests as Jobs. Each method is idempotent."""

    def place_of(self, version: ModelVersion) -> str:
        """Return the name of the cluster that the team chose. Empty without one."""

    def begin(self, version: ModelVersion, examined: ExaminedVersion) -> None:
        """Store the run. The cluster is not called."""

    def advance(self, run: LoadTestRun) -> LoadTest | str:
        """Take the next step: the result, or why there is none yet."""

    def remove(self, run: LoadTestRun) -> bool:
        """Remove the Job. False if the cluster has to be queried again."""


_runners: list[Runner] = []


def register(runner: Runner) -> None:
    _runners[:] = [runner]


def place_of(version: ModelVersion) -> str:
    return _runners[0].place_of(version) if _runners else ""


def describe(cluster: str, step: str = "") -> str:
    return f"runs on cluster {cluster}" + (f": {step}" if step else "")


def begin(version: ModelVersion, examined: ExaminedVersion) -> None:
    _runners[0].begin(version, examined)


def run_of(version: ModelVersion) -> LoadTestRun | None:
    """Return the run of this verification. One of an earlier verification is removed. None if there is none."""
    run = LoadTestRun.objects.filter(version=version).select_related("cluster").first()
    if run is None or run.until == version.deadline_at:
        return run
    remove(run)
    return None


def remove_of(version: ModelVersion) -> None:
    """Remove the runs of a verification that was stopped."""
    for run in LoadTestRun.objects.filter(version=version):
        remove(run)


def remove(run: LoadTestRun) -> None:
    """Remove a run. If the cluster cannot be reached, it removes the Job itself, by its time limits."""
    _runners[0].remove(run)
    run.delete()


def advance(run: LoadTestRun, checklist: Checklist) -> LoadTest | None:
    """Take the next step and return the result. None while the test runs. The Job is gone once there is a
    result, unless the cluster stays away.
    """
    if run.result is None:
        step = _runners[0].advance(run)
        if isinstance(step, str):
            if step != run.detail:
                LoadTestRun.objects.filter(pk=run.pk).update(detail=step)
            checklist.running(STEP, describe(run.cluster.name, step))
            return None
        run.result = step.to_json()
        LoadTestRun.objects.filter(pk=run.pk).update(result=run.result)
    if not _runners[0].remove(run) and clock.now() < run.deadline_at:
        return None
    return results.from_json(run.result)


def next_check_at(run: LoadTestRun) -> datetime:
    at = clock.now()
    return at + (_SOON if at - run.began_at < _FIRST_MINUTES else _LATER)
