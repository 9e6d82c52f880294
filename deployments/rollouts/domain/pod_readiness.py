"""Whether the candidate and its baseline are ready, and since when not: in words where that ends a rollout."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from deployments.plans.domain import descriptions
from deployments.rollouts.domain.observation import RolloutObservation, RolloutProgress
from deployments.states import RolloutPhase

UNREADY_SECONDS: Final = 120


def are_ready(progress: RolloutProgress, observed: RolloutObservation) -> bool:
    """Return whether the candidate is ready, and its baseline while there is one."""
    has_baseline = not progress.is_baseline_desired or observed.is_baseline_ready is True
    return observed.is_candidate_ready is True and has_baseline


def is_unready(observed: RolloutObservation, now: datetime) -> bool:
    since = observed.candidate_unready_since
    return (
        observed.is_candidate_ready is False
        and observed.is_stable_ready is True
        and _is_long(since, now)
    )


def is_baseline_unready(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> bool:
    """Return whether the baseline has been unready for too long. While it grows, pods that are not ready are
    those that start, so they do not count.
    """
    return (
        progress.promoted_to is None
        and progress.is_baseline_desired
        and observed.is_baseline_ready is False
        and observed.is_stable_ready is True
        and _is_long(observed.baseline_unready_since, now)
    )


def _is_long(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since >= timedelta(seconds=UNREADY_SECONDS)


def describe_deadline(progress: RolloutProgress, observed: RolloutObservation) -> str:
    is_of_baseline = observed.is_candidate_ready is True and not are_ready(progress, observed)
    message = observed.baseline_message if is_of_baseline else observed.candidate_message
    why = message or "the cluster gave no reason"
    if progress.phase == RolloutPhase.PREPARING:
        return f"the {'baseline' if is_of_baseline else 'candidate'} was not ready in time: {why}"
    if progress.promoted_to is not None:
        return f"not in time: {progress.describe_growth()} ({why})"
    if progress.phase == RolloutPhase.PROMOTING:
        return "the route did not send all requests to the candidate in time"
    if progress.phase == RolloutPhase.RUNNING and progress.step.deadline_seconds is not None:
        allowed = descriptions.format_duration(progress.step.deadline_seconds)
        return f"step {progress.step_index + 1} was not promoted within {allowed}"
    return "it was not promoted in time"
