"""Give a candidate that waits in a queue its time once it is admitted.

What other people's workloads leave to a queue says nothing about the candidate: no rollout ends by it. Only
phases that wait for pods are prolonged; the time that people have to decide is not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from deployments.rollouts.domain import decide
from deployments.rollouts.domain.observation import RolloutObservation, RolloutProgress
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import transitions
from deployments.states import RolloutPhase

# Renewed when half of it is over, not in each pass.
_TIME = timedelta(seconds=decide.PREPARE_SECONDS)


def extend_deadline(
    snapshot: RolloutSnapshot, observed: RolloutObservation, at: datetime
) -> RolloutProgress:
    """Return the progress to decide on, with the deadline that was stored."""
    progress = snapshot.progress
    is_near = progress.phase_deadline_at - at < _TIME / 2
    if not observed.is_queued or not _waits_for_pods(progress) or not is_near:
        return progress
    deadline = at + _TIME
    if not transitions.mark(snapshot.rollout, {"deadline_at": deadline}):
        return progress
    return replace(progress, phase_deadline_at=deadline)


def _waits_for_pods(progress: RolloutProgress) -> bool:
    is_growing = progress.phase == RolloutPhase.RUNNING and progress.promoted_to is not None
    return progress.phase == RolloutPhase.PREPARING or is_growing
