"""The ready pods of both sides of a rollout: how many were read, and what each has to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from deployments.guards.domain.load import PodLoad
from deployments.models import Revision
from deployments.rollouts.domain.observation import RolloutProgress
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from fleet.telemetry.selectors import coverage
from fleet.telemetry.selectors.coverage import Coverage

# After a few missing readings the last known numbers are no longer current.
STALE: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RolloutPods:
    """The pods of a rollout that were read. `stable` and `load` are None while stable gets no requests, so
    nothing is compared with it. The load is that of the candidate and of the pods that it is compared with.
    """

    candidate: Coverage
    stable: Coverage | None
    load: PodLoad | None
    baseline: Coverage | None = None


def read(snapshot: RolloutSnapshot) -> RolloutPods:
    rollout, progress = snapshot.rollout, snapshot.progress
    candidate = _covered(snapshot, rollout.candidate_revision)
    if progress.is_alone:
        return RolloutPods(candidate, None, None)
    stable = _covered(snapshot, rollout.stable_revision)
    baseline = _covered(snapshot, rollout.baseline_revision) if rollout.baseline_revision else None
    weight = progress.step.weight
    load = PodLoad(
        stable=_percent_of_compared(progress),
        candidate=weight,
        stable_pods=(baseline or stable).serving,
        candidate_pods=candidate.serving,
        stable_name="stable" if baseline is None else "baseline",
    )
    return RolloutPods(candidate, stable, load, baseline)


def _percent_of_compared(progress: RolloutProgress) -> int:
    if progress.is_shadow:
        # Stable answers all requests of which a shadow gets copies.
        return 100
    return progress.baseline_weight or 100 - progress.step.weight


def _covered(snapshot: RolloutSnapshot, revision: Revision) -> Coverage:
    deployment = snapshot.rollout.deployment
    return coverage.measure_coverage(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=revision.workload_name,
        within=STALE,
    )
